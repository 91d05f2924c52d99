//! Servers of a test's own, and short ways to say things.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use quantd::tonic::Code;
use quantd::v1::{DynamicQuantizeRequest, Tensor};
use quantd::{Client, Error};

pub fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run ./tests/run.sh clients"))
}

/// A call that hangs fails; no machine is this slow.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A client of the server that the suite has started.
pub async fn shared() -> Client {
    Client::connect(&variable("QUANTD_ADDRESS")).await.unwrap().with_timeout(PATIENCE)
}

pub fn dynamic(x: Tensor) -> DynamicQuantizeRequest {
    DynamicQuantizeRequest { x: Some(x), ..Default::default() }
}

pub fn zeros(count: usize) -> Tensor {
    Tensor::from_f32s(&vec![0.0; count], &[count as i64])
}

/// The error of a call that must fail in this way.
#[track_caller]
pub fn failure<T: std::fmt::Debug>(answer: Result<T, Error>, code: Code) -> Error {
    match answer {
        Err(error) if error.code == code => error,
        other => panic!("{other:?} is not {code:?}"),
    }
}

pub struct Server {
    pub address: String,
    process: Child,
    folder: PathBuf,
}

impl Server {
    pub fn start(flags: &[&str]) -> Server {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("quantd-rust-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir(&folder).unwrap();
        let ready = folder.join("ready.json");
        let log = File::create(folder.join("log")).unwrap();
        let mut command = Command::new(variable("TEST_QUANTD"));
        command.args(["--listen=127.0.0.1:0", "--http_listen=127.0.0.1:0"]).args(flags);
        command.arg(format!("--ready_file={}", ready.display()));
        for (name, _) in std::env::vars() {
            if name.starts_with("QUANTD_") {
                command.env_remove(name);
            }
        }
        let process = command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        let mut server = Server { address: String::new(), process, folder };
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            // {"grpc":["127.0.0.1:1"], ...
            if let Some(address) = std::fs::read_to_string(&ready).ok().and_then(|text| Some(text.split('"').nth(3)?.to_string()))
            {
                server.address = address;
                return server;
            }
            let ended = server.process.try_wait().unwrap().is_some();
            let said = || std::fs::read_to_string(server.folder.join("log")).unwrap_or_default();
            assert!(!ended && Instant::now() < deadline, "quantd {flags:?} does not start:\n{}", said());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub async fn client(&self) -> Client {
        Client::connect(&self.address).await.unwrap().with_timeout(PATIENCE)
    }

    pub fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

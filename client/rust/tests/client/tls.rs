//! A server that wants a certificate and a token: the suite makes both and starts it.

use std::path::PathBuf;

use quantd::tonic::Code;
use quantd::{Client, Credentials, Error};

use crate::support::{dynamic, failure, variable, zeros, PATIENCE};

fn file(name: &str) -> Option<PathBuf> {
    Some(PathBuf::from(variable("TEST_CERTIFICATES")).join(name))
}

fn all() -> Credentials {
    Credentials {
        tls_ca: file("ca.pem"),
        tls_cert: file("client.pem"),
        tls_key: file("client.key"),
        auth_token_file: file("token"),
    }
}

async fn ask(credentials: &Credentials) -> Result<u64, Error> {
    let client = Client::connect_with(&variable("TEST_TLS_ADDRESS"), credentials).await?.with_timeout(PATIENCE);
    Ok(client.server_info().await?.max_message_bytes)
}

#[tokio::test]
async fn with_certificate_and_token() {
    assert!(ask(&all()).await.unwrap() > 0);
    let port = variable("TEST_TLS_ADDRESS").rsplit(':').next().unwrap().to_string();
    for address in [format!("localhost:{port}"), format!("dns:///localhost:{port}")] {
        let client = Client::connect_with(&address, &all()).await.unwrap().with_timeout(PATIENCE);
        let y = client.dynamic_quantize(dynamic(zeros(2 << 20))).await.unwrap().y.unwrap();
        assert_eq!(y.to_vec::<u8>().unwrap().len(), 2 << 20);
    }
}

#[tokio::test]
async fn without_them() {
    let plain = Credentials { auth_token_file: file("token"), ..Default::default() };
    failure(ask(&plain).await, Code::Unavailable);
    failure(ask(&Credentials { tls_ca: file("other-ca.pem"), ..all() }).await, Code::Unavailable);
    failure(ask(&Credentials { tls_cert: None, tls_key: None, ..all() }).await, Code::Unavailable);
    failure(ask(&Credentials { auth_token_file: None, ..all() }).await, Code::Unauthenticated);
    failure(ask(&Credentials { auth_token_file: file("wrong-token"), ..all() }).await, Code::Unauthenticated);
}

#[tokio::test]
async fn files_that_are_wrong() {
    for (says, credentials) in [
        ("QUANTD_TLS_CA", Credentials { tls_ca: file("none.pem"), ..all() }),
        ("QUANTD_TLS_CA", Credentials { tls_ca: file("token"), ..all() }),
        ("QUANTD_TLS_CA", Credentials { tls_ca: None, ..all() }),
        ("QUANTD_TLS_KEY", Credentials { tls_key: None, ..all() }),
        ("QUANTD_TLS_CERT", Credentials { tls_cert: file("none.pem"), ..all() }),
        ("has no token", Credentials { auth_token_file: file("empty"), ..all() }),
        ("blanks", Credentials { auth_token_file: file("ca.pem"), ..all() }),
    ] {
        let error = failure(ask(&credentials).await, Code::InvalidArgument);
        assert!(error.message.contains(says), "{error} does not say {says}");
    }
    let token = Credentials { auth_token_file: file("token"), ..Default::default() };
    let far = Client::connect_with("192.0.2.1", &token).await.err().unwrap();
    assert!(far.message.contains("TLS"), "{far}");
}

/// After a replacement, the next call uses the new token.
#[tokio::test]
async fn token_that_changes() {
    let path = std::env::temp_dir().join(format!("quantd-rust-{}.token", std::process::id()));
    std::fs::copy(file("wrong-token").unwrap(), &path).unwrap();
    let credentials = Credentials { auth_token_file: Some(path.clone()), ..all() };
    let client = Client::connect_with(&variable("TEST_TLS_ADDRESS"), &credentials).await.unwrap().with_timeout(PATIENCE);
    failure(client.server_info().await, Code::Unauthenticated);
    std::fs::copy(file("token").unwrap(), &path).unwrap();
    client.server_info().await.unwrap();
    // If the file is missing, the last token is used.
    std::fs::remove_file(&path).unwrap();
    client.server_info().await.unwrap();
}

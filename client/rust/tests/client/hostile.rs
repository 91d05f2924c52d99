//! Servers that refuse, vanish, are full or were never there.

use std::time::Duration;

use quantd::tonic::Code;
use quantd::v1::stream_request::Request;
use quantd::v1::{DequantizeRequest, GetServerInfoRequest, StreamRequest, Tensor};
use quantd::{Client, Error};

use crate::support::{dynamic, failure, zeros, Server, PATIENCE};

#[tokio::test]
async fn message_over_the_limit() {
    let server = Server::start(&["--max_message_bytes=1048576"]);
    let client = server.client().await;
    for elements in [1 << 18, 4 << 20] {
        failure(client.dynamic_quantize(dynamic(zeros(elements))).await, Code::ResourceExhausted);
    }
    let answer_over_it = DequantizeRequest {
        x: Some(Tensor::from_slice(&vec![0i8; 300_000], &[300_000])),
        scale: Some(Tensor::from_f32s(&[1.0], &[])),
        ..Default::default()
    };
    failure(client.dequantize(answer_over_it).await, Code::ResourceExhausted);
    client.server_info().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_gone_while_calls_are_in_flight() {
    let mut server = Server::start(&[]);
    let client = server.client().await;
    let (items, receiver) = tokio::sync::mpsc::channel(1);
    let requests = tokio_stream::wrappers::ReceiverStream::new(receiver);
    items.send(StreamRequest { id: 1, request: Some(Request::DynamicQuantize(dynamic(zeros(1)))) }).await.unwrap();
    let mut answers = client.stream(requests).await.unwrap();
    assert_eq!(answers.message().await.unwrap().unwrap().id, 1);

    let (begun, mut first_answers) = tokio::sync::mpsc::channel(8);
    let request = dynamic(zeros(1 << 20));
    let callers: Vec<_> = (0..8)
        .map(|_| {
            let (client, begun, request) = (client.clone(), begun.clone(), request.clone());
            tokio::spawn(async move {
                loop {
                    let answer = client.dynamic_quantize(request.clone()).await;
                    let _ = begun.try_send(());
                    if let Err(error) = answer {
                        return error;
                    }
                }
            })
        })
        .collect();
    for _ in 0..8 {
        first_answers.recv().await.unwrap();
    }
    server.kill();
    for caller in callers {
        let error = tokio::time::timeout(PATIENCE, caller).await.unwrap().unwrap();
        assert_eq!(error.code, Code::Unavailable, "{error:?}");
    }
    let end = tokio::time::timeout(PATIENCE, answers.message()).await.unwrap();
    failure(end.map_err(Error::from), Code::Unavailable);
}

/// A client whose server was replaced still works.
#[tokio::test]
async fn another_server_at_the_address() {
    let mut first = Server::start(&[]);
    let client = first.client().await;
    client.server_info().await.unwrap();
    first.kill();
    let listen = format!("--listen={}", first.address);
    let _second = Server::start(&[&listen]);
    let until = tokio::time::Instant::now() + PATIENCE;
    while let Err(error) = client.server_info().await {
        assert!(error.code == Code::Unavailable && tokio::time::Instant::now() < until, "{error:?}");
    }
}

/// A full server says when to try again. The stub does not wait that long, so that the test sees it; the client does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_server() {
    let server = Server::start(&["--max_inflight_requests=1", "--max_queued_requests=1"]);
    let client = server.client().await;
    let (refused, mut seen) = tokio::sync::mpsc::channel(16);
    let request = dynamic(zeros(1 << 20));
    let callers: Vec<_> = (0..16)
        .map(|_| {
            let (mut stub, refused, request) = (client.stub(), refused.clone(), request.clone());
            tokio::spawn(async move {
                loop {
                    // On a slow machine the stream may end for other reasons; the errors say so.
                    match stub.dynamic_quantize(request.clone()).await.map_err(Error::from) {
                        Err(error) if error.code == Code::Unavailable && !error.reason.is_empty() => {
                            let _ = refused.send(error).await;
                            return;
                        }
                        _ => {}
                    }
                }
            })
        })
        .collect();
    let error = tokio::time::timeout(PATIENCE, seen.recv()).await.unwrap().unwrap();
    for caller in &callers {
        caller.abort();
    }
    assert!(error.retry_after > Some(Duration::ZERO), "{error:?}");
}

#[tokio::test]
async fn nobody_there() {
    let client = Client::connect("127.0.0.1:1").await.unwrap();
    failure(client.server_info().await, Code::Unavailable);
    failure(client.with_timeout(Duration::from_millis(20)).server_info().await, Code::Unavailable);
    let unix = Client::connect("unix:/no/such.sock").await.unwrap();
    failure(unix.server_info().await, Code::Unavailable);
}

#[tokio::test]
async fn unix_socket() {
    let path = std::env::temp_dir().join(format!("quantd-rust-{}.sock", std::process::id()));
    let listen = format!("--listen=unix:{}", path.display());
    let _server = Server::start(&[&listen]);
    let client = Client::connect(&format!("unix:{}", path.display())).await.unwrap().with_timeout(PATIENCE);
    client.server_info().await.unwrap();
    client.stub().get_server_info(GetServerInfoRequest {}).await.unwrap();
}

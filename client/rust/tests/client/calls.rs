//! What every user does.

use std::collections::HashSet;
use std::time::Duration;

use quantd::tonic::Code;
use quantd::v1::stream_request::Request;
use quantd::v1::stream_response::Response;
use quantd::v1::{
    DataType, DequantizeRequest, DynamicQuantizeRequest, EmbeddingRecipe, QuantizeEmbeddingsRequest, QuantizeRequest,
    StreamRequest, Tensor,
};
use quantd::Error;

use crate::support::{dynamic, failure, shared, variable, zeros, Server, PATIENCE};

fn scalar(value: f32) -> Option<Tensor> {
    Some(Tensor::from_f32s(&[value], &[]))
}

#[tokio::test]
async fn quantize_and_back() {
    let client = shared().await;
    let zero_point = Some(Tensor::from_slice(&[10u8], &[]));
    let answer = client
        .quantize(QuantizeRequest {
            x: Some(Tensor::from_f32s(&[-1.0, 0.0, 0.25, 0.75, 100.0, 3.0], &[2, 3])),
            scale: scalar(0.5),
            zero_point: zero_point.clone(),
            ..Default::default()
        })
        .await
        .unwrap();
    let y = answer.y.unwrap();
    assert_eq!(y.to_vec::<u8>().unwrap(), [8, 10, 10, 12, 210, 16]);
    let back = client.dequantize(DequantizeRequest { x: Some(y), scale: scalar(0.5), zero_point, ..Default::default() }).await;
    assert_eq!(back.unwrap().y.unwrap().to_vec::<f32>().unwrap(), [-1.0, 0.0, 0.0, 1.0, 100.0, 3.0]);
}

/// MXFP6 of 32 values: the largest is the type's largest, so that the block's scale is 1. By hand, from the OCP Microscaling
/// specification.
#[tokio::test]
async fn microscaling() {
    let client = shared().await;
    let e2m3: (&[f32], &[u8]) = (&[1.0, -1.5, 7.5, -0.125, -7.5], &[8, 44, 31, 33, 63]);
    let e3m2: (&[f32], &[u8]) = (&[1.0, 28.0, -0.0625, 0.25, -3.0, -28.0, 0.0625], &[12, 31, 33, 4, 50, 63, 1]);
    for (output, (values, wanted)) in [(DataType::Float6e2m3, e2m3), (DataType::Float6e3m2, e3m2)] {
        let (mut x, mut codes) = ([0f32; 32], [0u8; 32]);
        x[..values.len()].copy_from_slice(values);
        codes[..wanted.len()].copy_from_slice(wanted);
        let request = DynamicQuantizeRequest {
            x: Some(Tensor::from_f32s(&x, &[32])),
            output_type: output.into(),
            scale_type: DataType::Float8e8m0.into(),
            axis: Some(-1),
            block_size: 32,
            ..Default::default()
        };
        let answer = client.dynamic_quantize(request).await.unwrap();
        let y = answer.y.unwrap();
        assert_eq!(y.to_vec::<u8>().unwrap(), codes, "{output:?}");
        assert_eq!(answer.y_scale.as_ref().unwrap().to_vec::<u8>().unwrap(), [127], "{output:?}");
        let packed = Tensor::from_codes(output, &codes, &[32]).unwrap();
        assert_eq!(packed, y);
        let request = DequantizeRequest {
            x: Some(packed),
            scale: answer.y_scale,
            output_type: DataType::Float.into(),
            axis: Some(-1),
            block_size: 32,
            ..Default::default()
        };
        assert_eq!(client.dequantize(request).await.unwrap().y.unwrap().to_vec::<f32>().unwrap(), x, "{output:?}");
    }
}

#[tokio::test]
async fn halves() {
    let client = shared().await;
    for output in [DataType::Float16, DataType::Bfloat16] {
        let request = DequantizeRequest {
            x: Some(Tensor::from_slice(&[-128i8, -3, 0, 1, 127], &[5])),
            scale: scalar(0.25),
            output_type: output.into(),
            ..Default::default()
        };
        let y = client.dequantize(request).await.unwrap().y.unwrap();
        assert_eq!(y.to_vec::<f32>().unwrap(), [-32.0, -0.75, 0.0, 0.25, 31.75]);
        assert_eq!(y.to_vec::<u16>().unwrap().len(), 5);
    }
}

#[tokio::test]
async fn empty_and_0d() {
    let client = shared().await;
    for shape in [vec![0], vec![3, 0, 2]] {
        let y = client.dynamic_quantize(dynamic(Tensor::from_f32s(&[], &shape))).await.unwrap().y.unwrap();
        assert_eq!((y.to_vec::<u8>().unwrap(), y.shape), (vec![], shape));
    }
    let y = client.dynamic_quantize(dynamic(Tensor::from_f32s(&[5.0], &[]))).await.unwrap().y.unwrap();
    assert_eq!((y.to_vec::<u8>().unwrap(), y.shape), (vec![255], vec![]));
}

#[tokio::test]
async fn errors_name_the_field() {
    let client = shared().await;
    let x = [1.0, 2.0, f32::NAN, 4.0];
    let scales = QuantizeRequest {
        x: Some(Tensor::from_f32s(&[0.0; 8], &[2, 4])),
        scale: Some(Tensor::from_f32s(&[1.0, 2.0, 3.0], &[3])),
        axis: Some(1),
        ..Default::default()
    };
    for (field, says, error) in [
        ("scale", "3", client.quantize(scales).await.unwrap_err()),
        ("x", "16", client.dynamic_quantize(dynamic(Tensor::from_f32s(&x[..2], &[4]))).await.unwrap_err()),
        ("x", "2", client.dynamic_quantize(dynamic(Tensor::from_f32s(&x, &[4]))).await.unwrap_err()),
        ("x", "", client.quantize(QuantizeRequest::default()).await.unwrap_err()),
    ] {
        assert_eq!(error.code, Code::InvalidArgument, "{error}");
        assert!(error.message.contains(says) && !error.reason.is_empty(), "{error:?}");
        assert_eq!(error.fields.iter().map(|violation| violation.field.as_str()).collect::<Vec<_>>(), [field], "{error:?}");
    }
}

#[tokio::test]
async fn embeddings() {
    let request = QuantizeEmbeddingsRequest {
        x: Some(Tensor::from_f32s(&[1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0], &[1, 8])),
        recipe: EmbeddingRecipe::Bits.into(),
        ..Default::default()
    };
    let y = shared().await.quantize_embeddings(request).await.unwrap().y.unwrap();
    assert_eq!((y.to_vec::<u8>().unwrap(), y.shape), (vec![0xaa], vec![1, 1]));
}

#[tokio::test]
async fn info() {
    let info = shared().await.server_info().await.unwrap();
    assert!(!info.version.is_empty() && info.max_message_bytes > 0, "{info:?}");
}

/// 8 MiB of FLOAT in each direction: tonic's own limit is 4.
#[tokio::test]
async fn large_messages() {
    let client = shared().await;
    let x: Vec<f32> = (0..2 << 20).map(|i| (i % 255) as f32 - 127.0).collect();
    let request = QuantizeRequest {
        x: Some(Tensor::from_f32s(&x, &[x.len() as i64])),
        scale: scalar(1.0),
        output_type: DataType::Int8.into(),
        ..Default::default()
    };
    let y = client.quantize(request).await.unwrap().y;
    let back = client.dequantize(DequantizeRequest { x: y, scale: scalar(1.0), ..Default::default() }).await.unwrap();
    assert!(back.y.unwrap().to_vec::<f32>().unwrap() == x, "other values came back");
}

/// Items of very different sizes, and a bad one; only their ids tell which answer belongs to which.
#[tokio::test]
async fn stream() {
    const ITEMS: u64 = 500;
    let length = |id: u64| (1 + id % 7 * 3000) as usize;
    let requests = (0..ITEMS).map(move |id| {
        let mut x = zeros(length(id));
        if id == 100 {
            x.shape[0] += 1;
        }
        StreamRequest { id, request: Some(Request::DynamicQuantize(dynamic(x))) }
    });
    let mut answers = shared().await.stream(tokio_stream::iter(requests)).await.unwrap();
    let mut answered = HashSet::new();
    while let Some(answer) = tokio::time::timeout(PATIENCE, answers.message()).await.unwrap().unwrap() {
        assert!(answered.insert(answer.id), "{} is answered twice", answer.id);
        match answer.response.unwrap() {
            Response::DynamicQuantize(done) => {
                assert_eq!(done.y.unwrap().to_vec::<u8>().unwrap().len(), length(answer.id));
            }
            Response::Error(item) => {
                let error = Error::from(item);
                assert_eq!((answer.id, error.code, error.fields.len()), (100, Code::InvalidArgument, 1), "{error}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(answered.len() as u64, ITEMS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_calls_at_once() {
    let client = shared().await;
    let calls: Vec<_> = (0..1000u32)
        .map(|i| {
            let client = client.clone();
            let x = Some(Tensor::from_f32s(&[(i % 200) as f32], &[1]));
            tokio::spawn(async move { client.quantize(QuantizeRequest { x, scale: scalar(1.0), ..Default::default() }).await })
        })
        .collect();
    for (i, call) in calls.into_iter().enumerate() {
        assert_eq!(call.await.unwrap().unwrap().y.unwrap().to_vec::<u8>().unwrap(), [(i % 200) as u8]);
    }
}

#[tokio::test]
async fn deadlines_and_cancelled_calls() {
    let client = shared().await;
    let x = zeros(4 << 20);
    let hasty = client.with_timeout(Duration::from_micros(1));
    failure(hasty.dynamic_quantize(dynamic(x.clone())).await, Code::DeadlineExceeded);
    // Dropped at once or after a while: later calls are not affected.
    for wait in [0, 1, 5] {
        let calls: Vec<_> = (0..20)
            .map(|_| {
                let (client, request) = (client.clone(), dynamic(x.clone()));
                tokio::spawn(async move { client.dynamic_quantize(request).await })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(wait)).await;
        for call in &calls {
            call.abort();
        }
        for call in calls {
            match call.await {
                Ok(answer) => drop(answer.unwrap()), // it ended before
                Err(stopped) => assert!(stopped.is_cancelled()),
            }
        }
    }
    client.server_info().await.unwrap();
}

#[tokio::test]
async fn a_name_of_several_servers() {
    let port = variable("QUANTD_ADDRESS").rsplit(':').next().unwrap().to_string();
    let client = quantd::Client::connect(&format!("dns:///localhost:{port}")).await.unwrap().with_timeout(PATIENCE);
    for _ in 0..20 {
        client.server_info().await.unwrap();
    }
    let unknown = quantd::Client::connect("dns:///no-such-host.invalid:1").await;
    assert_eq!(unknown.err().unwrap().code, Code::Unavailable);
}

/// tonic accepts gzip only if told to, and the server sends nothing that a client does not accept.
#[tokio::test]
async fn a_server_that_compresses_answers_sends_plain_ones() {
    let x = Some(Tensor::from_slice(&[7u8; 100_000], &[100_000]));
    let request = DequantizeRequest { x, scale: scalar(0.5), ..Default::default() };
    let server = Server::start(&["--compress_answers=gzip"]);
    let plain = shared().await.dequantize(request.clone()).await.unwrap();
    assert_eq!(server.client().await.dequantize(request).await.unwrap(), plain);
}

#[test]
fn retries_are_those_of_the_service_config() {
    let config = std::fs::read_to_string(variable("TEST_SERVICE_CONFIG")).unwrap();
    for (name, value) in [
        ("maxAttempts", quantd::MAX_ATTEMPTS.to_string()),
        ("initialBackoff", format!("\"{}s\"", quantd::INITIAL_BACKOFF.as_secs_f64())),
        ("maxBackoff", format!("\"{}s\"", quantd::MAX_BACKOFF.as_secs_f64())),
        ("backoffMultiplier", quantd::BACKOFF_MULTIPLIER.to_string()),
        ("retryableStatusCodes", "[\"UNAVAILABLE\"]".to_string()),
    ] {
        assert!(config.contains(&format!("\"{name}\": {value}")), "{name} is not {value} there");
    }
}

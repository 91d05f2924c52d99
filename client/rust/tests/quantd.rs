//! The helper, against the server that ./tests/run.sh clients starts. Without the suite's variables the tests that call it fail.

use quantd::tonic::transport::Channel;
use quantd::v1::quantization_service_client::QuantizationServiceClient;
use quantd::v1::tensor::Contents;
use quantd::v1::{DataType, DequantizeRequest, DynamicQuantizeRequest, IntValues, QuantizeRequest, Tensor};

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run ./tests/run.sh clients"))
}

fn shared() -> QuantizationServiceClient<Channel> {
    quantd::client(quantd::endpoint(&format!("http://{}", variable("QUANTD_ADDRESS"))).unwrap().connect_lazy())
}

fn data(tensor: &Option<Tensor>) -> Option<Vec<u8>> {
    tensor.as_ref().map(|tensor| match &tensor.contents {
        Some(Contents::RawData(data)) => data.to_vec(),
        other => panic!("{other:?}"),
    })
}

#[test]
fn packing_is_that_of_the_contract() {
    for (data_type, values, bytes) in [
        (DataType::Int4, vec![-8i32, 7, -1], vec![0x78, 0x0f]),
        (DataType::Uint2, vec![0, 1, 2, 3, 3], vec![0xe4, 0x03]),
        (DataType::Float6e2m3, vec![8, 44, 31, 33, 63], vec![0x08, 0xfb, 0x85, 0x3f]),
        (DataType::Int16, vec![-32768, 1], vec![0x00, 0x80, 0x01, 0x00]),
        (DataType::Int32, vec![i32::MIN, 5], vec![0, 0, 0, 0x80, 5, 0, 0, 0]),
    ] {
        let tensor = Tensor::pack(data_type, &values, &[values.len() as i64]).unwrap();
        assert_eq!(tensor.unpack::<i32>().unwrap(), values, "{data_type:?}");
        assert_eq!(data(&Some(tensor)), Some(bytes), "{data_type:?}");
    }
}

#[test]
fn what_is_not_the_tensor_asked_for_is_refused() {
    let int4 = |bytes: &'static [u8], shape: &[i64]| Tensor::from_bytes(DataType::Int4, bytes, shape).unpack::<i8>().map(drop);
    let pack = |data_type, value: i32| Tensor::pack(data_type, &[value], &[1]).map(drop);
    let values = Tensor { contents: Some(Contents::IntValues(IntValues::default())), ..Tensor::default() };
    for (result, text) in [
        (pack(DataType::Int4, 8), "element 0 is 8"),
        (pack(DataType::Uint8, -1), "is -1"),
        (pack(DataType::Unspecified, 0), "not set"),
        (int4(b"a", &[3]), "[3] takes 2"),
        (int4(b"a", &[-1]), "[-1]"),
        (int4(b"", &[1 << 32, 1 << 32]), "more than 2^64"),
        (int4(b"a", &[0, 1 << 62]), "takes 0"),
        (Tensor::from_bytes(DataType::Uint8, &b"a"[..], &[1]).unpack::<i8>().map(drop), "0 to 255"),
        (values.unpack::<i8>().map(drop), "not in raw_data"),
        (Tensor { data_type: 99, ..Tensor::default() }.unpack::<i8>().map(drop), "99"),
        (Tensor::from_bytes(DataType::Int8, &b"a"[..], &[1]).to_f32s().map(drop), "INT8"),
    ] {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(text), "{error} does not say {text}");
    }
}

#[tokio::test]
async fn more_than_4_mib() {
    let request = DequantizeRequest {
        x: Some(Tensor::from_bytes(DataType::Uint8, vec![0; 5 << 20], &[5 << 20])),
        scale: Some(Tensor::from_f32s(&[1.0], &[])),
        ..Default::default()
    };
    let answer = shared().dequantize(request).await.unwrap().into_inner();
    assert_eq!(answer.y.unwrap().to_f32s().unwrap().len(), 5 << 20);
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    let pair = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (text != "-").then(|| (0..text.len()).step_by(2).map(pair).collect())
}

fn numbers(text: &str) -> Vec<i64> {
    text.split(',').filter(|&number| number != "-").map(|number| number.parse().unwrap()).collect()
}

/// quantctl's results, computed in its own process; tests/languages/vectors.py says what the columns are.
#[tokio::test]
async fn bytes_are_quantctls() {
    let mut client = shared();
    let text = std::fs::read_to_string(format!("{}/vectors.tsv", variable("TEST_VECTORS"))).unwrap();
    assert!(text.lines().count() >= 200);
    for line in text.lines() {
        let column: Vec<&str> = line.split('\t').collect();
        let (output, shape) = (DataType::try_from(column[0].parse::<i32>().unwrap()).unwrap(), numbers(column[1]));
        let axis = numbers(column[2]).first().copied();
        let at = format!("{output:?} {} axis {}", column[1], column[2]);
        let x = Some(Tensor::from_bytes(DataType::Float, bytes(column[3]).unwrap(), &shape));
        let (output_type, y) = (output.into(), bytes(column[4]));
        let request = DynamicQuantizeRequest { x: x.clone(), output_type, axis, ..Default::default() };
        let made = client.dynamic_quantize(request).await.unwrap_or_else(|error| panic!("{at}: {error}")).into_inner();
        let (scale, zero_point) = (made.y_scale, made.y_zero_point);
        assert_eq!((data(&made.y), data(&scale), data(&zero_point)), (y.clone(), bytes(column[5]), bytes(column[7])), "{at}");

        let (s, z) = (scale.clone(), zero_point.clone());
        let request = QuantizeRequest { x: x.clone(), scale: s, zero_point: z, output_type, axis, ..Default::default() };
        let given = client.quantize(request).await.unwrap_or_else(|error| panic!("{at}: {error}")).into_inner();
        assert_eq!(data(&given.y), y, "{at}, with its scale");
        let codes: Vec<i32> = made.y.as_ref().unwrap().unpack().unwrap();
        assert_eq!(Tensor::pack(output, &codes, &shape).ok(), made.y, "{at}, packed again");
        let request = DequantizeRequest { x: made.y, scale, zero_point, axis, ..Default::default() };
        let back = client.dequantize(request).await.unwrap_or_else(|error| panic!("{at}: {error}")).into_inner();
        assert_eq!(data(&back.y), bytes(column[8]), "{at}, back");
        let floats = x.as_ref().unwrap().to_f32s().unwrap();
        assert_eq!(Some(Tensor::from_f32s(&floats, &shape)), x);
    }
}

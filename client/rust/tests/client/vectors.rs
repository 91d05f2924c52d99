//! quantctl's results, computed in its own process; tests/languages/vectors.py says what the columns are.

use quantd::v1::{DataType, DequantizeRequest, DynamicQuantizeRequest, QuantizeRequest, Tensor};

use crate::support::{shared, variable};

fn bytes(text: &str) -> Option<Vec<u8>> {
    let pair = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (text != "-").then(|| (0..text.len()).step_by(2).map(pair).collect())
}

fn numbers(text: &str) -> Vec<i64> {
    if text == "-" {
        return Vec::new();
    }
    text.split(',').map(|number| number.parse().unwrap()).collect()
}

fn data(tensor: &Option<Tensor>) -> Option<Vec<u8>> {
    tensor.as_ref().map(|tensor| tensor.to_bytes().unwrap().to_vec())
}

#[tokio::test]
async fn bytes_are_quantctls() {
    let client = shared().await;
    let text = std::fs::read_to_string(format!("{}/vectors.tsv", variable("TEST_VECTORS"))).unwrap();
    assert!(text.lines().count() > 100);
    for line in text.lines() {
        let column: Vec<&str> = line.split('\t').collect();
        let output = DataType::try_from(column[0].parse::<i32>().unwrap()).unwrap();
        let axis = (column[2] != "-").then(|| column[2].parse().unwrap());
        let at = format!("{output:?} {} axis {}", column[1], column[2]);
        let x = Some(Tensor::from_bytes(DataType::Float, bytes(column[3]).unwrap(), &numbers(column[1])));
        let (y, scale, zero_point) = (bytes(column[4]), bytes(column[5]), bytes(column[7]));
        let request = DynamicQuantizeRequest { x: x.clone(), output_type: output.into(), axis, ..Default::default() };
        let answer = client.dynamic_quantize(request).await.unwrap_or_else(|error| panic!("{at}: {error}"));
        assert_eq!(
            (data(&answer.y), data(&answer.y_scale), data(&answer.y_zero_point)),
            (y.clone(), scale.clone(), zero_point.clone()),
            "{at}"
        );

        let shape = numbers(column[6]);
        let scale = scale.map(|scale| Tensor::from_bytes(DataType::Float, scale, &shape));
        let zero_point = zero_point.map(|zero| Tensor::from_bytes(output, zero, &shape));
        let request = QuantizeRequest {
            x: x.clone(),
            scale: scale.clone(),
            zero_point: zero_point.clone(),
            output_type: output.into(),
            axis,
            ..Default::default()
        };
        let answer = client.quantize(request).await.unwrap_or_else(|error| panic!("{at}: {error}"));
        assert_eq!(data(&answer.y), y, "{at}, with its scale");
        repacked(answer.y.as_ref().unwrap(), &at);
        let back = client.dequantize(DequantizeRequest { x: answer.y, scale, zero_point, axis, ..Default::default() }).await;
        assert_eq!(data(&back.unwrap_or_else(|error| panic!("{at}: {error}")).y), bytes(column[8]), "{at}, back");
        // The same numbers as slices.
        let floats: Vec<f32> = x.as_ref().unwrap().to_vec().unwrap();
        assert_eq!(Some(Tensor::from_f32s(&floats, &numbers(column[1]))), x);
    }
}

/// A packed tensor is the same after unpacking and packing.
fn repacked(y: &Tensor, at: &str) {
    let again = match y.data_type() {
        DataType::Int4 => Tensor::from_i4s(&y.to_vec::<i8>().unwrap(), &y.shape),
        DataType::Int2 => Tensor::from_i2s(&y.to_vec::<i8>().unwrap(), &y.shape),
        DataType::Uint4 => Tensor::from_u4s(&y.to_vec::<u8>().unwrap(), &y.shape),
        DataType::Uint2 => Tensor::from_u2s(&y.to_vec::<u8>().unwrap(), &y.shape),
        _ => return,
    };
    assert_eq!(&again.unwrap(), y, "{at}");
}

//! Quantizes a matrix to INT8, with one scale per row, and back. QUANTD_ADDRESS names the server.

use std::time::Duration;

use quantd::v1::{DataType, DequantizeRequest, DynamicQuantizeRequest, Tensor};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::var("QUANTD_ADDRESS").unwrap_or("127.0.0.1:50051".to_string());
    let channel = quantd::endpoint(&format!("http://{address}"))?.timeout(Duration::from_secs(10)).connect_lazy();
    let mut client = quantd::client(channel);
    let x: Vec<f32> = (0..4 * 64).map(|i| (i as f32).sin()).collect();
    let small = client
        .dynamic_quantize(DynamicQuantizeRequest {
            x: Some(Tensor::from_f32s(&x, &[4, 64])),
            output_type: DataType::Int8.into(),
            axis: Some(0),
            report_error: true,
            ..Default::default()
        })
        .await?
        .into_inner();
    let y = small.y.unwrap_or_default();
    let codes: Vec<i8> = y.unpack()?;
    let decibels = small.quantization_error.unwrap_or_default().sqnr_db;
    println!("{:?}: {:?} ... {decibels:.1} dB", y.shape, &codes[..4]);

    let back = client
        .dequantize(DequantizeRequest {
            x: Some(y),
            scale: small.y_scale,
            zero_point: small.y_zero_point,
            axis: Some(0),
            ..Default::default()
        })
        .await?
        .into_inner();
    println!("{:.4} is {:.4}", x[1], back.y.unwrap_or_default().to_f32s()?[1]);
    Ok(())
}

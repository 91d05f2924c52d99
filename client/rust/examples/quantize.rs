//! Quantizes a matrix to INT8, with one scale per row, and back. QUANTD_ADDRESS names the server.

use std::time::Duration;

use quantd::v1::{DataType, DequantizeRequest, DynamicQuantizeRequest, Tensor};

#[tokio::main]
async fn main() {
    if let Err(error) = run().await {
        eprintln!("{error}");
        for field in &error.fields {
            eprintln!("{}: {}", field.field, field.description);
        }
        std::process::exit(1);
    }
}

async fn run() -> Result<(), quantd::Error> {
    let client = quantd::Client::connect("").await?.with_timeout(Duration::from_secs(10));
    let x: Vec<f32> = (0..4 * 64).map(|i| (i as f32).sin()).collect();
    let small = client
        .dynamic_quantize(DynamicQuantizeRequest {
            x: Some(Tensor::from_f32s(&x, &[4, 64])),
            output_type: DataType::Int8.into(),
            axis: Some(0),
            report_error: true,
            ..Default::default()
        })
        .await?;
    let y = small.y.unwrap_or_default();
    let codes: Vec<i8> = y.to_vec()?;
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
        .await?;
    let floats: Vec<f32> = back.y.unwrap_or_default().to_vec()?;
    println!("{:.4} is {:.4}", x[1], floats[1]);
    Ok(())
}

//! Slices and bytes, without a server.

use quantd::v1::tensor::Contents;
use quantd::v1::{DataType, FloatValues, Tensor};

#[test]
fn bytes_are_little_endian() {
    for (tensor, data_type, bytes) in [
        (Tensor::from_f32s(&[1.0, -2.0], &[2]), DataType::Float, vec![0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0]),
        (Tensor::from_slice(&[1i32, -2], &[2]), DataType::Int32, vec![1, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff]),
        (Tensor::from_slice(&[1i16, -2], &[2]), DataType::Int16, vec![1, 0, 0xfe, 0xff]),
        (Tensor::from_slice(&[1u16, 0x1234], &[2]), DataType::Uint16, vec![1, 0, 0x34, 0x12]),
        (Tensor::from_slice(&[1i8, -2], &[2]), DataType::Int8, vec![1, 0xfe]),
        (Tensor::from_slice(&[1u8, 254], &[2]), DataType::Uint8, vec![1, 0xfe]),
    ] {
        assert_eq!((tensor.data_type(), tensor.to_bytes().unwrap().to_vec()), (data_type, bytes));
    }
}

#[test]
fn there_and_back() {
    let floats = [0.0, 1.5, -3.25, f32::MAX, f32::NEG_INFINITY, f32::from_bits(1)];
    assert_eq!(Tensor::from_f32s(&floats, &[2, 3]).to_vec::<f32>().unwrap(), floats);
    let ints = [0, i32::MIN, i32::MAX];
    assert_eq!(Tensor::from_slice(&ints, &[3]).to_vec::<i32>().unwrap(), ints);
    let shorts = [0, i16::MIN, i16::MAX];
    assert_eq!(Tensor::from_slice(&shorts, &[3]).to_vec::<i16>().unwrap(), shorts);
    let words = [0, 1, u16::MAX];
    assert_eq!(Tensor::from_slice(&words, &[3]).to_vec::<u16>().unwrap(), words);
    let bytes = [0, i8::MIN, i8::MAX];
    assert_eq!(Tensor::from_slice(&bytes, &[3]).to_vec::<i8>().unwrap(), bytes);
}

#[test]
fn packing() {
    let fours = Tensor::from_i4s(&[-8, 7, -1], &[3]).unwrap();
    assert_eq!(fours.to_bytes().unwrap().to_vec(), [0x78, 0x0f]);
    assert_eq!(fours.to_vec::<i8>().unwrap(), [-8, 7, -1]);
    let twos = Tensor::from_i2s(&[-2, 1, 0, -1, 1], &[5]).unwrap();
    assert_eq!(twos.to_bytes().unwrap().to_vec(), [0xc6, 0x01]);
    assert_eq!(twos.to_vec::<i8>().unwrap(), [-2, 1, 0, -1, 1]);
    let unsigned = Tensor::from_u4s(&[15, 0, 9], &[3]).unwrap();
    assert_eq!(unsigned.to_bytes().unwrap().to_vec(), [0x0f, 0x09]);
    assert_eq!(unsigned.to_vec::<u8>().unwrap(), [15, 0, 9]);
    let unsigned = Tensor::from_u2s(&[3, 0, 2, 1, 3], &[5]).unwrap();
    assert_eq!(unsigned.to_bytes().unwrap().to_vec(), [0x63, 0x03]);
    assert_eq!(unsigned.to_vec::<u8>().unwrap(), [3, 0, 2, 1, 3]);
    for value in [-9, 8] {
        assert!(Tensor::from_i4s(&[0, value], &[2]).unwrap_err().message.contains("element 1"));
    }
    assert!(Tensor::from_u2s(&[4], &[]).is_err());
}

#[test]
fn codes() {
    let fours = Tensor::from_codes(DataType::Float4e2m1, &[1, 8, 15], &[3]).unwrap();
    assert_eq!(fours.to_bytes().unwrap().to_vec(), [0x81, 0x0f]);
    assert_eq!(fours.to_vec::<u8>().unwrap(), [1, 8, 15]);
    // By hand, from the OCP Microscaling specification and ONNX's order of bits: 1, -1.5, 7.5, -0.125, -7.5; and
    // 1, 28, -0.0625, 0.25, -3, -28, 0.0625.
    let e2m3: (&[u8], &[u8]) = (&[8, 44, 31, 33, 63], &[0x08, 0xfb, 0x85, 0x3f]);
    let e3m2: (&[u8], &[u8]) = (&[12, 31, 33, 4, 50, 63, 1], &[0xcc, 0x17, 0x12, 0xf2, 0x1f, 0]);
    for (data_type, (codes, bytes)) in [(DataType::Float6e2m3, e2m3), (DataType::Float6e3m2, e3m2)] {
        let tensor = Tensor::from_codes(data_type, codes, &[codes.len() as i64]).unwrap();
        assert_eq!((tensor.to_bytes().unwrap().as_ref(), tensor.to_vec::<u8>().unwrap().as_slice()), (bytes, codes));
        assert!(Tensor::from_codes(data_type, &[64], &[]).unwrap_err().message.contains("holds 0 to 63"));
        assert!(Tensor::from_bytes(data_type, vec![0; 5], &[7]).to_vec::<u8>().is_err());
    }
    // The unused bits may contain anything.
    assert_eq!(Tensor::from_bytes(DataType::Float6e3m2, vec![0xff], &[1]).to_vec::<u8>().unwrap(), [63]);
    assert_eq!(Tensor::from_bytes(DataType::Uint4, vec![0xf3], &[1]).to_vec::<u8>().unwrap(), [3]);
    let message = Tensor::from_codes(DataType::Float4e2m1, &[1, 16], &[2]).unwrap_err().message;
    assert!(message.contains("element 1 is 16, FLOAT4E2M1 holds 0 to 15"), "{message}");
    for data_type in [DataType::Float, DataType::Float16, DataType::Int4, DataType::Unspecified] {
        assert!(Tensor::from_codes(data_type, &[1], &[]).is_err(), "{data_type:?}");
    }
    let message = Tensor::from_slice(&[1i8], &[]).to_vec::<u8>().unwrap_err().message;
    assert!(message.contains("is INT8") && message.contains("takes UINT8, UINT4"), "{message}");
}

#[test]
fn half_bits() {
    let half = |bits: u16| Tensor::from_bytes(DataType::Float16, bits.to_le_bytes().to_vec(), &[]).to_vec::<f32>().unwrap()[0];
    let least = 1.0 / 16_777_216.0;
    for (bits, want) in [
        (0x3c00, 1.0),
        (0xc000, -2.0),
        (0x7bff, 65504.0),
        (0x0001, least),
        (0x83ff, -1023.0 * least),
        (0x0400, 1024.0 * least),
        (0x3555, 0.333_251_95),
        (0x7c00, f32::INFINITY),
        (0xfc00, f32::NEG_INFINITY),
        (0x8000, -0.0),
    ] {
        assert_eq!(half(bits).to_bits(), want.to_bits(), "{bits:04x}");
    }
    assert!(half(0x7e00).is_nan());
}

#[test]
fn tensors_that_are_wrong() {
    let float = |bytes: usize, shape: &[i64]| Tensor::from_bytes(DataType::Float, vec![0u8; bytes], shape);
    let with = |contents| Tensor { data_type: DataType::Float.into(), shape: vec![1], contents };
    for tensor in [
        Tensor::default(),
        Tensor { data_type: 99, ..float(4, &[]) },
        Tensor::from_slice(&[1i8], &[]),
        float(7, &[2]),
        float(12, &[2]),
        float(0, &[-1]),
        float(4, &[i64::MAX, i64::MAX, 4]),
        float(4, &[i64::MAX]),
        float(4, &[0, i64::MAX]),
        with(None),
        with(Some(Contents::FloatValues(FloatValues { values: vec![1.0] }))),
    ] {
        let error = tensor.to_vec::<f32>().unwrap_err();
        assert_eq!(error.fields.len(), 1, "{tensor:?}: {error}");
        assert!(["data_type", "shape", "raw_data"].contains(&error.fields[0].field.as_str()), "{error:?}");
    }
    let message = float(7, &[2]).to_vec::<f32>().unwrap_err().message;
    assert!(message.contains("raw_data has 7 bytes, FLOAT of shape [2] takes 8"), "{message}");
    assert_eq!(float(0, &[i64::MAX, 0, i64::MAX]).to_vec::<f32>().unwrap(), []);
}

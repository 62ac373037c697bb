//! Tensors of files, checked, and tensors that are made on the spot.

use safetensors::{Dtype, SafeTensorError, SafeTensors};

/// Why a file has not the weights that a network takes.
#[derive(Debug, thiserror::Error)]
pub enum WeightsError {
    /// It is no file of safetensors, or is cut short.
    #[error("no whole file of safetensors: {0}")]
    File(#[from] SafeTensorError),
    /// A tensor is missing.
    #[error("there is no tensor {name}; there are: {there}")]
    Missing {
        /// The tensor.
        name: String,
        /// Those that are there.
        there: String,
    },
    /// A tensor of another type.
    #[error("tensor {name} is of {found:?}, but must be of F32")]
    Type {
        /// The tensor.
        name: String,
        /// Its type.
        found: Dtype,
    },
    /// A tensor of another shape.
    #[error("tensor {name} has shape {found:?}, but must have {expected:?}")]
    Shape {
        /// The tensor.
        name: String,
        /// Its shape.
        found: Vec<usize>,
        /// The one that it must have.
        expected: Vec<usize>,
    },
    /// An element is no number, infinite, or too large for its type on the device.
    #[error(
        "element {at} of tensor {name} is {value}, but must be finite and at most {most} in size"
    )]
    Number {
        /// The tensor.
        name: String,
        /// Which element, row by row.
        at: usize,
        /// What it is.
        value: f32,
        /// The greatest that there may be.
        most: f32,
    },
}

/// A file's tensor of that name and shape, row by row. No element may be larger than `most`.
///
/// # Errors
/// When there is none, or it is another one.
pub fn tensor(
    file: &SafeTensors<'_>,
    name: &str,
    shape: &[usize],
    most: f32,
) -> Result<Vec<f32>, WeightsError> {
    let name = name.to_string();
    let Ok(tensor) = file.tensor(&name) else {
        let mut there = file.names();
        there.sort_unstable();
        return Err(WeightsError::Missing { name, there: there.join(", ") });
    };
    if tensor.dtype() != Dtype::F32 {
        return Err(WeightsError::Type { name, found: tensor.dtype() });
    }
    if tensor.shape() != shape {
        let (found, expected) = (tensor.shape().to_vec(), shape.to_vec());
        return Err(WeightsError::Shape { name, found, expected });
    }
    let bytes = tensor.data().chunks_exact(4);
    let values: Vec<f32> =
        bytes.map(|bytes| f32::from_le_bytes(bytes.try_into().expect("four"))).collect();
    match values.iter().position(|value| value.is_nan() || value.abs() > most) {
        Some(at) => Err(WeightsError::Number { name, at, value: values[at], most }),
        None => Ok(values),
    }
}

/// `count` numbers of tensor `tensor`, evenly spread in -scale / 2..scale / 2: each is made of its own index by splitmix64, so that
/// programs in other languages can make the same.
#[must_use]
pub fn made(tensor: u64, count: usize, scale: f32) -> Vec<f32> {
    let number = |k: u64| {
        let z = (tensor << 32).wrapping_add(k).wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let bits = (z ^ (z >> 31)) >> 40; // 24, which an f32 has exactly
        (bits as f32 / 16_777_216.0 - 0.5) * scale
    };
    (0..count as u64).map(number).collect()
}

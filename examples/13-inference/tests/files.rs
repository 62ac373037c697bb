//! Files of weights: those of PyTorch are read, and what is wrong with others is told.

use ring_inference::tensors::{WeightsError, made};
use ring_inference::{lstm, mlp};
use safetensors::tensor::{Dtype, TensorView, serialize};

type Tensors = Vec<(&'static str, Vec<usize>, Vec<f32>)>;

fn file(tensors: &Tensors, dtype: Dtype) -> Vec<u8> {
    let bytes: Vec<Vec<u8>> = tensors
        .iter()
        .map(|(_, _, values)| values.iter().flat_map(|value| value.to_le_bytes()).collect())
        .collect();
    let views = tensors.iter().zip(&bytes).map(|((name, shape, _), bytes)| {
        let shape = match dtype {
            Dtype::F16 => shape.iter().enumerate().map(|(k, n)| n << usize::from(k == 0)).collect(),
            _ => shape.clone(),
        };
        (*name, TensorView::new(dtype, shape, bytes).unwrap())
    });
    serialize(views, None).unwrap()
}

/// What PyTorch saves of the perceptron.
fn of_perceptron() -> Tensors {
    let shapes = [
        ("0.weight", vec![256, 64]),
        ("0.bias", vec![256]),
        ("2.weight", vec![256, 256]),
        ("2.bias", vec![256]),
        ("4.weight", vec![16, 256]),
        ("4.bias", vec![16]),
    ];
    let filled = shapes.into_iter().zip(10..).map(|((name, shape), tensor)| {
        let fan_in = *shape.get(1).unwrap_or(&0) as f32;
        let scale = if fan_in > 0.0 { 2.0 / fan_in.sqrt() } else { 0.2 };
        let values = made(tensor, shape.iter().product(), scale);
        (name, shape, values)
    });
    filled.collect()
}

#[test]
fn a_perceptron_of_pytorch_is_read() {
    let read = mlp::Weights::of_file(&file(&of_perceptron(), Dtype::F32)).unwrap();
    assert_eq!(read, mlp::Weights::made());
}

#[test]
fn an_lstm_of_pytorch_is_read_and_its_two_biases_are_added() {
    let shapes = [
        ("lstm.weight_ih_l0", vec![512, 32]),
        ("lstm.weight_hh_l0", vec![512, 128]),
        ("lstm.bias_ih_l0", vec![512]),
        ("lstm.bias_hh_l0", vec![512]),
        ("lstm.weight_ih_l1", vec![512, 128]),
        ("lstm.weight_hh_l1", vec![512, 128]),
        ("lstm.bias_ih_l1", vec![512]),
        ("lstm.bias_hh_l1", vec![512]),
        ("head.weight", vec![16, 128]),
        ("head.bias", vec![16]),
    ];
    let of = |name: &str, n: usize| match name {
        "lstm.weight_ih_l0" => made(0, n, 2.0 / 160f32.sqrt()),
        "lstm.weight_hh_l0" => made(1, n, 2.0 / 160f32.sqrt()),
        "lstm.bias_ih_l0" => made(2, n, 0.2).iter().map(|x| x - 0.25).collect(),
        "lstm.weight_ih_l1" => made(3, n, 2.0 / 256f32.sqrt()),
        "lstm.weight_hh_l1" => made(4, n, 2.0 / 256f32.sqrt()),
        "lstm.bias_ih_l1" => made(5, n, 0.2).iter().map(|x| x - 0.25).collect(),
        "head.weight" => made(6, n, 2.0 / 128f32.sqrt()),
        "head.bias" => made(7, n, 0.2),
        _ => vec![0.25; n],
    };
    let filled = |(name, shape): (&'static str, Vec<usize>)| {
        let values = of(name, shape.iter().product());
        (name, shape, values)
    };
    let tensors: Tensors = shapes.map(filled).into();
    let read = lstm::Weights::of_file(&file(&tensors, Dtype::F32)).unwrap();
    let x = lstm::features(0, 0);
    let (mut found, mut expected) = (lstm::Reference::default(), lstm::Reference::default());
    let both = found.step(&read, &x).into_iter().zip(expected.step(&lstm::Weights::made(), &x));
    assert!(both.into_iter().all(|(found, expected)| (found - expected).abs() < 1e-6));
}

#[test]
fn what_is_wrong_with_a_file_is_told() {
    let of = |tensors: &Tensors, dtype| mlp::Weights::of_file(&file(tensors, dtype)).unwrap_err();
    let whole = of_perceptron();
    let told = |error: WeightsError, says: &str| {
        let text = error.to_string();
        assert!(text.contains(says), "{text}");
    };
    let bytes = file(&whole, Dtype::F32);
    for end in [0, 7, 100, bytes.len() - 1] {
        let error = mlp::Weights::of_file(&bytes[..end]).unwrap_err();
        assert!(matches!(error, WeightsError::File(_)), "{error}");
        told(error, "no whole file of safetensors");
    }
    told(of(&whole, Dtype::F16), "tensor 0.weight is of F16, but must be of F32");
    let with = |change: &dyn Fn(&mut Tensors)| {
        let mut tensors = whole.clone();
        change(&mut tensors);
        of(&tensors, Dtype::F32)
    };
    let missing = with(&|tensors| drop(tensors.remove(3)));
    told(
        missing,
        "there is no tensor 2.bias; there are: 0.bias, 0.weight, 2.weight, 4.bias, 4.weight",
    );
    let shape = with(&|tensors| tensors[2].1 = vec![128, 512]);
    told(shape, "tensor 2.weight has shape [128, 512], but must have [256, 256]");
    let no_number = with(&|tensors| tensors[0].2[77] = f32::NAN);
    told(no_number, "element 77 of tensor 0.weight is NaN");
    let infinite = with(&|tensors| tensors[5].2[15] = f32::INFINITY);
    told(infinite, "element 15 of tensor 4.bias is inf");
    // It is a number, but none of 16 bits.
    let large = with(&|tensors| tensors[4].2[1] = 70_000.0);
    told(
        large,
        "element 1 of tensor 4.weight is 70000, but must be finite and at most 65504 in size",
    );
}

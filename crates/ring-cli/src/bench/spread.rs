//! The spread of single runs: a difference that is smaller is noise.

/// Fewest runs of which a spread is given.
const RUNS: usize = 3;

/// Between what bounds the ratios of single runs lie, each run of `ours` made right beside the same of
/// `theirs`: what befell both alike is not counted. None if there were too few.
pub fn in_turn(ours: &[f64], theirs: &[f64]) -> Option<[f64; 2]> {
    if ours.len() != theirs.len() {
        return one_by_one(ours, theirs);
    }
    of_runs(&ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect::<Vec<_>>())
}

/// The same of runs that were made one after the other: any of `ours` over any of `theirs`.
pub fn one_by_one(ours: &[f64], theirs: &[f64]) -> Option<[f64; 2]> {
    let ([least, most], [slow, fast]) = (of_runs(ours)?, of_runs(theirs)?);
    Some([least / fast, most / slow])
}

/// Least and most, but for one of each eight at either end. The median of as many runs lies there again
/// nine times of ten, if there were five or more.
pub fn of_runs(values: &[f64]) -> Option<[f64; 2]> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let (n, outside) = (values.len(), values.len() / 8);
    (n >= RUNS).then(|| [values[outside], values[n - 1 - outside]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_befalls_both_alike_is_not_counted_if_they_were_measured_in_turn() {
        let (ours, theirs) = ([1.0, 2.0, 4.0], [2.0, 4.0, 8.0]);
        assert_eq!(in_turn(&ours, &theirs), Some([0.5, 0.5]));
        assert_eq!(one_by_one(&ours, &theirs), Some([0.125, 2.0]));
        assert_eq!(in_turn(&ours, &[2.0, 4.0, 8.0, 8.0]), Some([0.125, 2.0]));
    }

    #[test]
    fn one_run_of_eight_at_either_end_does_not_count() {
        let mut values: Vec<f64> = (1..=10).map(f64::from).collect();
        values.swap(0, 9);
        assert_eq!(of_runs(&values), Some([2.0, 9.0]));
        assert_eq!(of_runs(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]), Some([1.0, 7.0]));
    }

    #[test]
    fn a_few_runs_tell_nothing() {
        assert_eq!(in_turn(&[1.0, 2.0], &[1.0, 2.0]), None);
        assert_eq!(one_by_one(&[1.0, 2.0, 3.0], &[1.0]), None);
    }
}

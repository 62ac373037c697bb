use super::*;

/// Channel 1 of 3 sends ten messages; these answers come, by message, or changed.
fn after(answers: impl IntoIterator<Item = Result<u64, EchoMessage>>) -> Tally {
    let mut tally = Tally::new(1, 3);
    for answer in answers {
        let answer = answer.map_or_else(|changed| changed, |i| tally.message(i).answer());
        tally.count(&answer, 10);
    }
    tally
}

fn in_order(messages: &[u64]) -> Tally {
    after(messages.iter().map(|&i| Ok(i)))
}

fn counts(tally: &Tally) -> [u64; 4] {
    [tally.lost(10), tally.duplicated, tally.reordered, tally.corrupt]
}

#[test]
fn the_factor_is_the_messages() {
    assert_eq!(FACTOR.wrapping_mul(INVERSE), 1);
    for seed in [0, 1, 77, u64::MAX] {
        assert_eq!(EchoMessage::from_seed(seed).words[0].wrapping_mul(INVERSE), seed);
    }
}

#[test]
fn all_in_order_is_sound() {
    let tally = in_order(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert!(tally.sound(10));
    assert_eq!(counts(&tally), [0, 0, 0, 0]);
    assert!(!tally.sound(11), "one more was sent");
}

#[test]
fn lost_ones_are_counted_in_the_middle_and_at_the_end() {
    let tally = in_order(&[0, 1, 4, 5, 6, 7]);
    assert!(!tally.sound(10));
    assert_eq!(counts(&tally), [4, 0, 0, 0]);
    let wrong = tally.first_wrong.unwrap().to_string();
    assert_eq!(wrong, "channel 1, message 2: got the answer to message 4");
}

#[test]
fn nothing_at_all_is_lost_and_not_sound() {
    let tally = in_order(&[]);
    assert_eq!(counts(&tally), [10, 0, 0, 0]);
    assert!(!tally.sound(10));
}

#[test]
fn one_that_comes_twice_is_duplicated() {
    let tally = in_order(&[0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0]);
    assert_eq!(counts(&tally), [0, 2, 0, 0]);
    assert!(!tally.sound(10));
}

#[test]
fn one_that_comes_late_is_reordered_and_not_lost() {
    assert_eq!(counts(&in_order(&[0, 2, 1, 3, 4, 5, 6, 7, 8, 9])), [0, 0, 1, 0]);
    let backwards = in_order(&[9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
    assert_eq!(counts(&backwards), [0, 0, 9, 0]);
    let split = in_order(&[5, 2, 0, 4, 2, 6, 7, 8, 9]);
    assert_eq!(counts(&split), [2, 1, 3, 0], "1 and 3 are lost, 2 came twice");
}

#[test]
fn a_changed_answer_is_corrupt_and_stands_for_its_message() {
    let mut changed = EchoMessage::from_seed(1 + 3 * 2).answer();
    changed.words[5] ^= 1 << 40;
    let answers = [Ok(0), Ok(1), Err(changed)].into_iter().chain((3..10).map(Ok));
    let tally = after(answers);
    assert_eq!(counts(&tally), [0, 0, 0, 1]);
    assert!(!tally.sound(10));
    let wrong = tally.first_wrong.unwrap().to_string();
    assert!(wrong.starts_with("channel 1, message 2: word 5: got 0x"), "{wrong}");
}

#[test]
fn an_answer_from_nowhere_is_corrupt_and_displaces_none() {
    for stranger in [EchoMessage { words: [0; 8] }, EchoMessage { words: [!0; 8] }] {
        let answers = [Ok(0), Err(stranger)].into_iter().chain((1..10).map(Ok));
        assert_eq!(counts(&after(answers)), [0, 0, 0, 1]);
    }
}

#[test]
fn another_channels_answer_the_request_itself_and_one_not_sent_are_corrupt() {
    let strangers = [
        EchoMessage::from_seed(3 * 2).answer(),
        EchoMessage::from_seed(1 + 3 * 2),
        EchoMessage::from_seed(1 + 3 * 10).answer(),
    ];
    for stranger in strangers {
        let answers = (0..10).map(Ok).chain([Err(stranger)]);
        assert_eq!(counts(&after(answers)), [0, 0, 0, 1]);
    }
}

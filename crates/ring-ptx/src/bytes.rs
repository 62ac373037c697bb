//! Bytes of an initialiser.

/// The bytes that text like `.global .b8 x[3] = {47, 97, 98};` holds between its braces; `None` in the
/// place of what is no byte.
pub fn bytes(text: &str) -> impl Iterator<Item = Option<u8>> {
    let list =
        text.split_once('{').map(|(_, rest)| rest.split_once('}').map_or(rest, |(list, _)| list));
    list.into_iter().flat_map(|list| list.split(',').map(|byte| byte.trim().parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn bytes_stand_between_braces() {
        let all = |text| bytes(text).collect::<Vec<_>>();
        assert_eq!(all(".b8 x[2] = {47, 0};"), [Some(47), Some(0)]);
        assert_eq!(all(".b8 x[2] = {1,x,256"), [Some(1), None, None]);
        assert_eq!(all(".u32 x = 7;"), []);
    }
}

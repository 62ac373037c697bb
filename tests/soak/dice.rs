use ring_tests::mixed;

/// Numbers that look random, the same for the same seed.
#[derive(Clone, Debug)]
pub struct Dice(pub u64);

impl Dice {
    /// The next number.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0)
    }

    /// The next number below `sides`.
    pub fn below(&mut self, sides: u64) -> u64 {
        self.roll() % sides
    }

    /// One of those.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

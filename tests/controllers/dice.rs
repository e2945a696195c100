//! A generator of pseudo-random numbers, which are the same in every run.

/// The generator. The value is its seed.
pub struct Dice(pub u64);

impl Dice {
    /// Returns the next number, which is less than `sides`.
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

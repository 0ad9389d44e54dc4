//! Checks that a pattern cannot express: the check digits of card and account numbers.

/// What a finding must pass beyond its rule's pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// The last digit of a card number.
    Luhn,
    /// The remainder of an account number, ISO 13616.
    Iban,
}

impl Check {
    const ALL: [(&'static str, Self); 2] = [("luhn", Self::Luhn), ("iban", Self::Iban)];

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, check)| check)
    }

    pub fn names() -> String {
        Self::ALL.map(|(name, _)| name).join(", ")
    }

    pub fn passes(self, found: &[u8]) -> bool {
        match self {
            Self::Luhn => luhn(found),
            Self::Iban => iban(found),
        }
    }
}

fn luhn(found: &[u8]) -> bool {
    let digits = found.iter().rev().filter(|b| b.is_ascii_digit()).map(|b| u32::from(b - b'0'));
    let weigh = |(i, digit): (usize, u32)| match digit * 2 {
        _ if i % 2 == 0 => digit,
        double => double / 10 + double % 10,
    };
    let sum: u32 = digits.enumerate().map(weigh).sum();
    sum > 0 && sum.is_multiple_of(10)
}

fn iban(found: &[u8]) -> bool {
    let signs: Vec<u8> = found.iter().copied().filter(u8::is_ascii_alphanumeric).collect();
    if signs.len() < 15 {
        return false;
    }
    let turned = signs[4..].iter().chain(&signs[..4]);
    let value = |b: &u8| char::from(*b).to_digit(36).unwrap_or(0);
    let push = |rest: u32, n: u32| (rest * if n > 9 { 100 } else { 10 } + n) % 97;
    turned.map(value).fold(0, push) == 1
}

#[cfg(test)]
mod tests {
    use super::Check;

    #[test]
    fn check_digits_tell_numbers_from_others() {
        assert!(Check::Luhn.passes(b"4111 1111 1111 1111"));
        assert!(!Check::Luhn.passes(b"4111 1111 1111 1112"));
        assert!(!Check::Luhn.passes(b"0000 0000 0000 0000"));
        assert!(Check::Iban.passes(b"DE89 3704 0044 0532 0130 00"));
        assert!(!Check::Iban.passes(b"DE89 3704 0044 0532 0130 01"));
        assert!(!Check::Iban.passes(b"DE89"));
    }
}

//! What a code's row lets a failure choose.

use faultwire_contract::Code;

/// The choices of a failure of one code.
pub struct Choices {
    /// It may name a delay.
    pub delay: bool,
    /// The retry classes, where there are several.
    pub retry: Vec<&'static str>,
    /// The statuses, where there are several.
    pub status: Vec<u16>,
    /// It may keep what was done before it.
    pub data: bool,
}

impl Choices {
    pub fn of(code: &Code) -> Self {
        let kinds = code.retry.iter().map(|class| class.name());
        Self {
            delay: code.retry.iter().any(|class| class.takes_delay()),
            retry: if code.retry.len() > 1 { kinds.collect() } else { Vec::new() },
            status: if code.status.len() > 1 { code.status.clone() } else { Vec::new() },
            data: code.keeps_data,
        }
    }
}

/// The sentences about a code for its documentation.
pub fn sentences(code: &Code) -> Vec<String> {
    let retry: Vec<&str> = code.retry.iter().map(|class| class.name()).collect();
    let mut said = vec![
        code.meaning.trim().to_owned(),
        format!("Category: {}. Retry: {}. {}", code.category, retry.join(" or "), code.action),
    ];
    if let Some(retired) = &code.retired {
        said.push(format!("Retired since {}: use {}.", retired.since, retired.successor));
    }
    said
}

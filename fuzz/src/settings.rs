//! `faultwire.toml`: any text is an error with its line inside the file, or settings whose every
//! place is inside the file and whose clients can be made.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/faultwire-cli/src/clients.rs"]
mod clients;
#[path = "../../crates/faultwire-cli/src/config.rs"]
#[expect(dead_code, reason = "the program reads more of it")]
mod config;

const FILE: &str = "fuzz.toml";

fuzz_target!(|data: &[u8]| {
    let Ok(text) = str::from_utf8(data) else { return };
    let lines = text.split('\n').count();
    let config = match config::Config::parse(Path::new(FILE), text.to_owned()) {
        Ok(config) => config,
        Err(problem) => return inside(&problem.place, lines),
    };
    let again = config::Config::parse(Path::new(FILE), text.to_owned());
    let again = again.unwrap_or_else(|_| panic!("the same text is refused"));
    assert_eq!(format!("{config:?}"), format!("{again:?}"));
    for name in config.tool.keys() {
        inside(&config.place(&["tool", name, "timeout"]), lines);
    }
    let longest = std::time::Duration::from_hours(24 * 30);
    let waits = [config.timeout, config.max_timeout, config.drain, config.restart.cap];
    assert!(waits.into_iter().flatten().all(|wait| !wait.is_zero() && wait <= longest));
    match clients::clients(&config) {
        Ok(made) => {
            assert!(made.len() >= config.client.len());
            for client in made {
                let lists = [client.scope.tools.unwrap_or_default(), client.scope.deny];
                assert!(lists.iter().flatten().all(|p| !p.is_empty() && !p.starts_with('!')));
            }
        }
        Err(problem) => inside(&problem.place, lines),
    }
});

fn inside(place: &str, lines: usize) {
    let line = place.strip_prefix(FILE).and_then(|rest| rest.strip_prefix(':'));
    let line = line.and_then(|line| line.parse().ok());
    assert!(line.is_some_and(|line| (1..=lines).contains(&line)), "{place}, of {lines} lines");
}

/// Stands in for the files that the program reads.
mod edge {
    use std::path::Path;

    use crate::problem::Problem;

    pub fn file(path: &Path) -> Result<String, Problem> {
        Err(Problem::bad(&path.display().to_string(), "no files here", "pass the text"))
    }
}

/// Stands in for the environment: a variable has its own name as its value.
mod secrets {
    use std::path::PathBuf;

    use crate::problem::Problem;

    pub fn secret(
        variable: Option<&str>,
        file: Option<&PathBuf>,
        place: &str,
    ) -> Result<Option<String>, Problem> {
        if variable.is_some() && file.is_some() {
            return Err(Problem::bad(place, "there are two tokens", "name one"));
        }
        Ok(variable.map(str::to_owned).or(file.map(|file| file.display().to_string())))
    }
}

/// The program's error, as far as a reader of settings makes it.
mod problem {
    pub struct Problem {
        pub place: String,
    }

    impl Problem {
        pub fn bad(place: &str, what: impl Into<String>, help: impl Into<String>) -> Self {
            assert!(!what.into().is_empty() && !help.into().is_empty());
            Self { place: place.to_owned() }
        }
    }
}

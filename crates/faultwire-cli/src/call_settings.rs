//! Resolves how calls are handled: flags and environment take precedence over the file, and the
//! file over the defaults.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use faultwire::audit::{Log, OpenError, Options};
use faultwire_contract::{Contract, DEFAULT, Masks, Meta, Session, SoftFailures};
use faultwire_gateway::{Arguments, Output, Settings};

use crate::args::call_settings::{self as args, CallSettings, LogLevel};
use crate::config::{Config, Treat};
use crate::problem::Problem;
use crate::{edge, resolve};

/// How long to wait until another process releases a named log.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many servers of one name can run at once without `--audit`.
const SLOTS: u32 = 64;

/// The settings of one server. `masks` are the kinds of text to mask unless the file says otherwise.
pub fn settings(args: &CallSettings, config: &Config, masks: Masks) -> Result<Settings, Problem> {
    settings_of(args, config, masks, None)
}

/// The same for a `[[mount]]`, by its index; a mount can have its own contract.
pub fn settings_of(
    args: &CallSettings,
    config: &Config,
    masks: Masks,
    mount: Option<usize>,
) -> Result<Settings, Problem> {
    let own = mount.and_then(|number| config.mount.get(number));
    // An error points at the file if the value came from there.
    let asked = |key: &'static str, typed: bool, own: bool| {
        move |problem: Problem| match mount.filter(|_| own) {
            _ if typed => problem,
            Some(number) => problem.asked_at(config.place(&["mount", &number.to_string(), key])),
            None => problem.asked_at(config.place(&[key])),
        }
    };
    let typed = args.contract.as_deref();
    let own_contract = own.and_then(|mount| mount.contract.as_deref());
    let of_file = own_contract.or(config.contract.as_deref());
    let of_file = of_file.map(|name| config.contract_named(name));
    let name = typed.or(of_file.as_deref()).unwrap_or(DEFAULT);
    let place = asked("contract", typed.is_some(), own_contract.is_some());
    let contract = resolve::contract(name).map_err(place)?;
    let typed = args.profile.as_deref();
    let own_profile = own.and_then(|mount| mount.profile.as_deref());
    let name = typed.or(own_profile).or(config.profile.as_deref());
    let place = asked("profile", typed.is_some(), own_profile.is_some());
    let mut settings = Settings::new(Arc::clone(&contract));
    settings.profile = resolve::profile(&contract, name).map_err(place)?;
    settings.show_stack = edge::stamp(&contract).show_stack;
    settings.masks = masked(masks, config, &contract)?;
    settings.arguments = arguments(args, config)?;
    settings.output = output(args, config)?;
    settings.soft_failures = soft_failures(args, config)?;

    let deadlines = &mut settings.deadlines;
    set(&mut deadlines.default, args.timeout.or(config.timeout));
    set(&mut deadlines.hard, args.max_timeout.or(config.max_timeout));
    set(&mut deadlines.start, config.start_timeout);
    let of_file = config.tool.iter().filter_map(|(name, t)| Some((name.clone(), t.timeout?)));
    deadlines.tools = of_file.chain(args.tool_timeout.iter().cloned()).collect();

    set(&mut settings.retry.times, args.retry.or(config.retry));
    set(&mut settings.retry.budget, config.retry_budget);
    set(&mut settings.drain, config.drain);
    set(&mut settings.answer_cancelled, config.answer_cancelled);
    set(&mut settings.busy_poll, config.busy_poll);
    set(&mut settings.failures_as_results, config.failures_as_results);
    let limits = &mut settings.limits;
    set(&mut limits.line_bytes, config.limits.line_bytes);
    set(&mut limits.depth, config.limits.depth);
    set(&mut limits.in_flight, config.limits.in_flight);
    set(&mut limits.backlog_bytes, config.limits.backlog_bytes);
    let restart = &mut settings.restart;
    set(&mut restart.limit, config.restart.limit);
    set(&mut restart.base, config.restart.base);
    set(&mut restart.cap, config.restart.cap);

    settings.session = Session {
        role: config.session.role.clone(),
        workspace_root: config.session.workspace_root.clone(),
        ..Session::default()
    };
    settings.meta = Meta {
        tool_version: config.meta.tool_version.clone(),
        mode: config.meta.mode.clone(),
        approval_mode: config.meta.approval_mode,
        ..Meta::default()
    };
    Ok(settings)
}

pub fn set<T>(setting: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *setting = given;
    }
}

/// What is masked by default or by the file. The contract's own masks always apply (U2).
fn masked(mut masks: Masks, config: &Config, contract: &Contract) -> Result<Masks, Problem> {
    let given = &config.redact;
    for (name, kind, given) in [
        ("paths", Masks::PATHS, given.paths),
        ("addresses", Masks::ADDRESSES, given.addresses),
        ("frames", Masks::FRAMES, given.frames),
        ("personal", Masks::PERSONAL, given.personal),
    ] {
        match given {
            Some(Treat::Keep) if contract.text.masks.covers(kind) => {
                let what = format!(
                    "{name} = \"keep\" is not allowed: contract {} masks {name}",
                    contract.name
                );
                let help = format!("write {name} = \"mask\", or choose another contract");
                return Err(Problem::bad(&config.place(&["redact", name]), what, help));
            }
            Some(Treat::Keep) => masks = masks.without(kind),
            Some(Treat::Mask) => masks = masks.with(kind),
            None => {}
        }
    }
    Ok(masks.with(contract.text.masks))
}

fn arguments(args: &CallSettings, config: &Config) -> Result<Arguments, Problem> {
    let given = match (args.arguments, config.arguments.as_deref()) {
        (Some(given), _) => Some(given),
        (None, Some(word)) => Some(word_of(word, "arguments", config)?),
        (None, None) => None,
    };
    Ok(match given {
        Some(args::Arguments::Off) => Arguments::Off,
        Some(args::Arguments::Warn) => Arguments::Warn,
        Some(args::Arguments::Enforce) | None => Arguments::Enforce,
    })
}

fn output(args: &CallSettings, config: &Config) -> Result<Output, Problem> {
    let given = match (args.output, config.output.as_deref()) {
        (Some(given), _) => Some(given),
        (None, Some(word)) => Some(word_of(word, "output", config)?),
        (None, None) => None,
    };
    Ok(match given {
        Some(args::Output::Off) => Output::Off,
        Some(args::Output::Warn) | None => Output::Warn,
        Some(args::Output::Enforce) => Output::Enforce,
    })
}

fn soft_failures(args: &CallSettings, config: &Config) -> Result<SoftFailures, Problem> {
    let given = match (args.soft_failures, config.soft_failures.as_deref()) {
        (Some(given), _) => Some(given),
        (None, Some(word)) => Some(word_of(word, "soft_failures", config)?),
        (None, None) => None,
    };
    Ok(match given {
        Some(args::SoftFailures::Off) => SoftFailures::Off,
        Some(args::SoftFailures::Record) => SoftFailures::Record,
        Some(args::SoftFailures::Auto) | None => SoftFailures::Auto,
        Some(args::SoftFailures::Rewrite) => SoftFailures::Rewrite,
    })
}

pub fn level(args: &CallSettings, config: &Config) -> Result<LogLevel, Problem> {
    match (args.log, config.log.as_deref()) {
        (Some(level), _) => Ok(level),
        (None, Some(word)) => word_of(word, "log", config),
        (None, None) => Ok(LogLevel::Warn),
    }
}

/// Parses a setting of the file that has a fixed set of values.
fn word_of<T: clap::ValueEnum>(word: &str, key: &str, config: &Config) -> Result<T, Problem> {
    T::from_str(word, false).map_err(|_| {
        let all = T::value_variants().iter().filter_map(clap::ValueEnum::to_possible_value);
        let all: Vec<String> = all.map(|value| value.get_name().to_owned()).collect();
        let what = format!("{key} = {word:?} is not a valid value");
        Problem::bad(&config.place(&[key]), what, format!("write one of {}", all.join(", ")))
    })
}

/// Opens the log that was named, or the first free one for servers of this name. Returns its
/// directory, too.
pub fn open_log(
    args: &CallSettings,
    config: &Config,
    what: &str,
    name: &str,
) -> Result<(Log, PathBuf), Problem> {
    let options = || Options {
        holder: format!("faultwire {what}, process {}", std::process::id()),
        fail_open: config.audit.fail_open.unwrap_or_default(),
        retry_after: Duration::from_secs(1),
        ..Options::default()
    };
    if let Some(dir) = args.audit.as_ref().or(config.audit.dir.as_ref()) {
        return Ok((open_once_free(dir, options)?, dir.clone()));
    }
    let root = edge::audit_dir();
    let slot = |n: u32| match n {
        1 => root.join(name),
        n => root.join(format!("{name}-{n}")),
    };
    for n in 1..SLOTS {
        let dir = slot(n);
        match Log::open(&dir, options()) {
            Err(OpenError::Locked { .. }) => {}
            opened => return Ok((opened?, dir)),
        }
    }
    Ok((Log::open(slot(SLOTS), options())?, slot(SLOTS)))
}

/// Opens a log that was named. A client that probes which protocol a server speaks starts it twice
/// in a row, and the first process may not have exited yet.
fn open_once_free(dir: &Path, options: impl Fn() -> Options) -> Result<Log, Problem> {
    let until = edge::instant() + PATIENCE;
    loop {
        match Log::open(dir, options()) {
            Err(OpenError::Locked { .. }) if edge::instant() < until => {
                std::thread::sleep(Duration::from_millis(10));
            }
            opened => return Ok(opened?),
        }
    }
}

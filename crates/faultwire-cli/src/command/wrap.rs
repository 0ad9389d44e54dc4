//! `wrap`: one server behind the contract, for a client on stdin and stdout.

use std::io;
use std::path::Path;

use faultwire_contract::Masks;
use faultwire_gateway::{Launch, Settings, WrapError, wrap};

use crate::args::wrap::WrapArgs;
use crate::config::Config;
use crate::problem::Problem;
use crate::{Done, call_settings, edge, logging, secrets, server_name, snippet};

pub fn run(args: &WrapArgs) -> Result<Done, Problem> {
    // `--print-config` is for people: its errors are not startup failures.
    let is_run = args.print_config.is_none();
    prepared(args).map_err(|problem| if is_run { problem.at_start() } else { problem })?.run(args)
}

/// What a server is wrapped with.
struct Prepared {
    config: Config,
    name: String,
    settings: Settings,
}

fn prepared(args: &WrapArgs) -> Result<Prepared, Problem> {
    let config = Config::read(args.call_settings.config.as_deref())?;
    let name = match (&args.name, &config.name) {
        (Some(name), _) => server_name::given(name, "--name")?,
        (None, Some(name)) => server_name::given(name, &config.place(&["name"]))?,
        (None, None) => server_name::of(&args.command),
    };
    let settings = call_settings::settings(&args.call_settings, &config, Masks::LOCAL)?;
    // A bad level is reported before anything else happens.
    call_settings::level(&args.call_settings, &config)?;
    Ok(Prepared { config, name, settings })
}

impl Prepared {
    fn run(self, args: &WrapArgs) -> Result<Done, Problem> {
        let Self { config, name, settings } = self;
        if let Some(client) = args.print_config {
            edge::print(snippet::of(client, &name, args)?.as_bytes())?;
            return Ok(Done::Fine);
        }
        logging::start(call_settings::level(&args.call_settings, &config)?);
        config.warn_of_old_names();
        let (log, dir) = call_settings::open_log(&args.call_settings, &config, "wrap", &name)?;
        tracing::info!(contract = settings.contract.name, audit = %dir.display(), "wrapping {name}");
        // The file may name secrets if `serve` uses it, too.
        let withheld = secrets::named(&config);
        let launch = Launch { withheld, ..args.command.clone().into() };
        let wrapped = wrap(settings, &log, launch, edge::streams()?);
        let closed = log.close();
        wrapped.map_err(|e| match &e {
            WrapError::Start { command, error } => Problem::Startup {
                place: command.to_string_lossy().into_owned(),
                what: format!("cannot start the server: {error}"),
                help: help(Path::new(command), error).to_owned(),
            },
            WrapError::System(_) => Problem::Startup {
                place: name,
                what: e.to_string(),
                help: "close some processes or open files".to_owned(),
            },
        })?;
        Ok(if closed.is_ok() { Done::Fine } else { Done::Findings })
    }
}

/// What to do about a program that does not start.
fn help(program: &Path, error: &io::Error) -> &'static str {
    match error.kind() {
        _ if program.is_dir() => "this is a directory; name a program after --",
        io::ErrorKind::NotFound if program.is_file() => {
            "the file exists, but the interpreter in its first line (#!) does not"
        }
        io::ErrorKind::NotFound => "after --, name a program on the PATH, or give its path",
        io::ErrorKind::PermissionDenied => {
            "make it executable (chmod +x), or put its interpreter first"
        }
        _ if program.is_file() => "not executable; put its interpreter first",
        _ => "after --, name a program on the PATH, or give its path",
    }
}

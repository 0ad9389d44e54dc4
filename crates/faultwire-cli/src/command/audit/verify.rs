//! `audit verify`: checks every record and signature of a log.

use std::path::{Path, PathBuf};

use faultwire::audit::{
    Disk, Expect, Finding, PublicKey, Storage, Verified, Wrong, legacy, segment, verify,
};
use serde_json::json;

use crate::Done;
use crate::args::audit::VerifyArgs;
use crate::edge;
use crate::problem::Problem;
use crate::progress::Progress;
use crate::style::{DIM, ERROR, GOOD, HELP, paint};

pub fn run(args: &VerifyArgs, json: bool) -> Result<Done, Problem> {
    let named = args.place.log()?;
    let key = args.key.as_deref().map(public_key).transpose()?;
    let file = if named.is_dir() { named.join(segment::LIVE) } else { named.clone() };
    if super::first_line(&file)?.is_some_and(|line| legacy::is_legacy(&line)) {
        if key.is_some() {
            let help = "remove --key: the older format has no signatures";
            return Err(Problem::bad(
                &file.display().to_string(),
                "the log is in the older format",
                help,
            ));
        }
        return match signed_beside(&file) {
            Some(beside) => replaced(&file, &beside, json),
            None => run_legacy(&file, json),
        };
    }
    let dir = if named.is_dir() || !named.exists() { named } else { directory_of(&named)? };
    let given = key.is_some();
    // A directory that only has signatures once had a log.
    if !dir.join(segment::CHECKPOINTS).exists() {
        super::expect_log(&dir)?;
    }
    let expect = Expect { key, archived: args.archived };
    let mut progress = Progress::over_bytes(super::size(&dir), "verifying");
    let verified = verify(&Disk::new(&dir), &expect, &mut |read| progress.advance(read));
    progress.finish();
    match verified {
        Ok(verified) => good(&dir, &verified, given, json),
        Err(finding) => match &finding.why {
            Wrong::Io(e) => {
                let help = help(&finding.why);
                Err(Problem::bad(&finding.path.display().to_string(), e.to_string(), help))
            }
            _ => bad(&finding, json),
        },
    }
}

/// Another file of a signed log in the same directory, if this file has the name of a segment.
fn signed_beside(file: &Path) -> Option<String> {
    let name = file.file_name()?.to_str()?;
    if !segment::is_record_file(name) {
        return None;
    }
    let dir = file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut names = Disk::new(dir).names().ok()?;
    names.sort();
    names.into_iter().find(|other| other != name && segment::is_own(other))
}

/// The older format has no signatures, so anyone could replace a signed log with it.
fn replaced(file: &Path, beside: &str, json: bool) -> Result<Done, Problem> {
    let why = format!(
        "this file is in the older, unsigned format, but {beside} in the same directory belongs to a signed log: the log was replaced"
    );
    let help = "keep the directory unchanged and compare it with a backup; to verify a log of the older format, copy it to its own directory";
    if json {
        let page = json!({ "ok": false, "format": "legacy", "file": file, "line": 1, "why": why, "good": 0, "help": help });
        edge::print(format!("{page:#}\n").as_bytes())?;
        return Ok(Done::Findings);
    }
    let text = format!("{}: {}: {why}\n", paint(ERROR, "bad"), file.display());
    edge::show(&(text + &format!("  {}: {help}\n", paint(HELP, "help"))))?;
    Ok(Done::Findings)
}

/// The directory of a log, given one of its segments.
fn directory_of(file: &Path) -> Result<PathBuf, Problem> {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if name != segment::LIVE && segment::number(name).is_none() {
        let what = "the file does not begin with a record of the current or the older format";
        let help = "name the directory of a log, or a file of the older format";
        return Err(Problem::bad(&file.display().to_string(), what, help));
    }
    let dir = file.parent().filter(|dir| !dir.as_os_str().is_empty());
    Ok(dir.unwrap_or(Path::new(".")).to_owned())
}

/// A key in a file, or the key itself.
fn public_key(text: &str) -> Result<PublicKey, Problem> {
    if let Ok(key) = PublicKey::parse(text) {
        return Ok(key);
    }
    if text.trim_start().starts_with("PRIVATE+KEY+") {
        let help = "pass the public key (audit-log.pub), and replace this signing key: other users can see command lines";
        return Err(Problem::bad(
            "--key",
            "this is the secret signing key, not the public key",
            help,
        ));
    }
    let line = edge::file(Path::new(text)).map_err(|_| {
        let help = "pass the file with the public key (audit-log.pub), or the key itself";
        Problem::bad(text, "neither a public key nor a readable file", help)
    })?;
    PublicKey::parse(&line).map_err(|e| {
        let help = "the public key is the line in audit-log.pub; never share audit-log.key";
        Problem::bad(text, e.to_string(), help)
    })
}

fn good(dir: &Path, verified: &Verified, given: bool, json: bool) -> Result<Done, Problem> {
    if json {
        let page = json!({
            "ok": true,
            "format": 1,
            "log": verified.log,
            "records": verified.records,
            "first": verified.first,
            "segments": verified.segments,
            "bytes": verified.bytes,
            "checkpoints": verified.checkpoints,
            "sealed": verified.sealed,
            "key": verified.key,
            "key_given": given,
            "growing": verified.growing,
        });
        edge::print(format!("{page:#}\n").as_bytes())?;
        return Ok(Done::Fine);
    }
    let mut text = format!(
        "{}: verified {} records in {}, {} bytes\n",
        paint(GOOD, &dir.display().to_string()),
        verified.records - verified.first,
        if verified.segments == 1 {
            "one segment".to_owned()
        } else {
            format!("{} segments", verified.segments)
        },
        verified.bytes,
    );
    if verified.first > 0 {
        text += &format!("  the {} records before these are archived\n", verified.first);
    }
    text += &signatures(verified, given);
    if verified.growing {
        text += "  the log is being written and may have more records by now\n";
    }
    edge::show(&text)?;
    Ok(Done::Fine)
}

fn signatures(verified: &Verified, given: bool) -> String {
    let (sealed, checkpoints) = (verified.sealed, verified.checkpoints);
    let plural = if checkpoints == 1 { " covers" } else { "s cover" };
    let covered = format!("{checkpoints} checkpoint{plural} {sealed} of the records");
    let mut text = match &verified.key {
        _ if checkpoints == 0 => "  nothing is signed yet\n".to_owned(),
        Some(key) => {
            let name: Vec<&str> = key.split('+').take(2).collect();
            format!("  {covered}, signed by {}\n", name.join("+"))
        }
        None => format!("  {covered}; without a key, no signature was checked\n"),
    };
    let after = verified.records - sealed;
    if after > 0 && checkpoints > 0 {
        text += &format!(
            "  {after} records after the last checkpoint are chained, but not signed yet\n"
        );
    }
    if !given && verified.key.is_some() && checkpoints > 0 {
        let note = "the key was read from the log's own directory; pass a copy from elsewhere with --key to find forgeries, too";
        text += &paint(DIM, &format!("  {note}\n"));
    }
    text
}

fn bad(finding: &Finding, json: bool) -> Result<Done, Problem> {
    let help = help(&finding.why);
    if json {
        let page = json!({
            "ok": false,
            "file": finding.path,
            "line": finding.line,
            "why": finding.why.to_string(),
            "good": finding.good,
            "help": help,
        });
        edge::print(format!("{page:#}\n").as_bytes())?;
        return Ok(Done::Findings);
    }
    let mut text = format!("{}: {finding}\n", paint(ERROR, "bad"));
    if finding.good > 0 {
        text += &format!("  the first {} records are valid\n", finding.good);
    }
    text += &format!("  {}: {help}\n", paint(HELP, "help"));
    edge::show(&text)?;
    Ok(Done::Findings)
}

fn help(why: &Wrong) -> &'static str {
    match why {
        Wrong::Unfinished | Wrong::UnfinishedCheckpoint | Wrong::NoLive => {
            "restart the program that writes the log: it repairs this automatically"
        }
        Wrong::Missing(_) => {
            "restore the segment; if it was archived on purpose, check the rest with --archived"
        }
        Wrong::Key(_) | Wrong::NoKey => "pass the public key with --key",
        Wrong::Stray => "move the file away: it does not belong to this log",
        Wrong::Io(_) => "make sure that it is a regular file that you can read",
        Wrong::Unsigned => "pass the key of this log, or find out where its checkpoints went",
        Wrong::Chain(broken) if broken.is_version() => {
            "use the version of faultwire that wrote it, or a newer one"
        }
        _ => {
            "the log was changed after it was written, or the disk is failing: keep it unchanged and compare it with a backup"
        }
    }
}

fn run_legacy(file: &Path, json: bool) -> Result<Done, Problem> {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let dir = file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let opened = Disk::new(dir).read(name).map_err(|e| Problem::File(file.to_owned(), e))?;
    let total = file.metadata().map_or(0, |m| m.len());
    let mut progress = Progress::over_bytes(total, "verifying");
    let verified = legacy::verify(opened, &mut |read| progress.advance(read));
    progress.finish();
    let name = file.display().to_string();
    match verified {
        Ok(verified) if json => {
            let page = json!({ "ok": true, "format": "legacy", "records": verified.records, "bytes": verified.bytes });
            edge::print(format!("{page:#}\n").as_bytes())?;
            Ok(Done::Fine)
        }
        Ok(verified) => {
            let note = "the older format is chained, but not signed: it cannot show that lines were removed from its end";
            edge::show(&format!(
                "{}: verified {} records of the older format\n{}",
                paint(GOOD, &name),
                verified.records,
                paint(DIM, &format!("  {note}\n")),
            ))?;
            Ok(Done::Fine)
        }
        Err(finding) if json => {
            let (line, why) = (finding.line, finding.why.to_string());
            let page = json!({ "ok": false, "format": "legacy", "file": file, "line": line, "why": why, "good": line - 1 });
            edge::print(format!("{page:#}\n").as_bytes())?;
            Ok(Done::Findings)
        }
        Err(finding) => {
            let good = finding.line - 1;
            edge::show(&format!(
                "{}: {name}:{}: {}\n  the {good} records before it are valid\n",
                paint(ERROR, "bad"),
                finding.line,
                finding.why
            ))?;
            Ok(Done::Findings)
        }
    }
}

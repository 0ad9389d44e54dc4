//! Envelopes read back, and put on the MCP wire.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::code::Code;
use crate::contract::{Contract, Profile, Surface};
use crate::fault::Fault;
use crate::fault::fill::Success;
use crate::incident::is_timestamp;
use crate::json_escape::quote;
use crate::report::{Meta, Report};
use crate::retry::RetryClass;
use crate::template::read::Reading;
use crate::template::write::Both;
use crate::tool_failure::TOOL_FAILURE_META;

/// The member of `_meta` that names the contract.
pub const CONTRACT_META: &str = "dev.faultwire/contract";

/// The member of `_meta` that has the envelope where the result has no `structuredContent`, since
/// the tool declares an `outputSchema` (S5).
pub const ENVELOPE_META: &str = "dev.faultwire/envelope";

/// Why something is not an envelope of the contract.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The shape does not match.
    #[error("not an envelope of {contract} ({surface}): {why}")]
    Shape {
        /// The contract.
        contract: String,
        /// The surface.
        surface: &'static str,
        /// What differs, and where.
        why: String,
    },
    /// The code is not one of the contract's.
    #[error("{contract} has no code {code:?}")]
    UnknownCode {
        /// The contract.
        contract: String,
        /// The code that was read.
        code: String,
        /// The category beside it: how a client may still treat it.
        category: Option<String>,
        /// What the envelope says of a retry.
        retryable: Option<bool>,
        /// The delay beside it.
        retry_after_ms: Option<u64>,
    },
    /// The envelope contradicts the contract.
    #[error("the envelope says that {code} has {fact}, which contradicts {contract}")]
    Contradiction {
        /// The contract.
        contract: String,
        /// The code.
        code: String,
        /// What the envelope claims.
        fact: String,
    },
}

impl Contract {
    /// Reads an envelope back to its failure (A4). It is strict: input that is not exactly an
    /// envelope of this contract is refused, and so is one that contradicts its own code.
    pub fn read(
        &self,
        surface: Surface,
        profile: Profile,
        json: &[u8],
    ) -> Result<Report, ReadError> {
        let read = self.template(surface, profile).read(json);
        let reading = read.map_err(|e| ReadError::Shape {
            contract: self.name.clone(),
            surface: surface.name(),
            why: e.to_string(),
        })?;
        self.accept(reading)
    }

    /// Reads an envelope of any profile; the error is the most telling one.
    pub fn read_any(&self, surface: Surface, json: &[u8]) -> Result<(Report, Profile), ReadError> {
        let mut best: Option<ReadError> = None;
        for profile in self.all_profiles() {
            match self.read(surface, profile, json) {
                Ok(report) => return Ok((report, profile)),
                // A contradiction in a matching shape is a better error than a shape that does not
                // match.
                Err(e) => {
                    let tells_more = !matches!(e, ReadError::Shape { .. });
                    let told = best.as_ref().is_some_and(|b| !matches!(b, ReadError::Shape { .. }));
                    if best.is_none() || (tells_more && !told) {
                        best = Some(e);
                    }
                }
            }
        }
        Err(best.unwrap_or_else(|| ReadError::Shape {
            contract: self.name.clone(),
            surface: surface.name(),
            why: "the contract has no profile".to_owned(),
        }))
    }

    /// The facts of a body that names this code and is not quite an envelope. What the contract
    /// derives from the code is not among them.
    pub(crate) fn gleaned(&self, code: &Code, body: &str) -> Option<Report> {
        let body: Value = serde_json::from_str(body).ok()?;
        let named = |profile| {
            let reading = self.template(Surface::Mcp, profile).glean(&body);
            (reading.report.code == code.id).then_some((reading.report, reading.after_s))
        };
        let (report, after_s) = self.all_profiles().find_map(named)?;
        let takes_delay = code.retry.iter().any(|class| class.takes_delay());
        let delay = report.retry_after_ms.or(after_s.map(|s| s.saturating_mul(1000)));
        let is_cause = |cause: &Value| cause.is_string() || cause.is_object();
        Some(Report {
            retry: None,
            status: None,
            retry_after_ms: delay.filter(|_| takes_delay),
            data: report.data.filter(|_| code.keeps_data),
            cause: report.cause.filter(is_cause),
            timestamp: report.timestamp.filter(|text| is_timestamp(text)),
            ..report
        })
    }

    /// Compares what the envelope says about the code with what the contract says.
    fn accept(&self, reading: Reading<'_>) -> Result<Report, ReadError> {
        let seconds = reading.after_s.map(|s| s.saturating_mul(1000));
        let delay = reading.report.retry_after_ms.or(seconds);
        let Some(row) = self.code(&reading.report.code) else {
            return Err(ReadError::UnknownCode {
                contract: self.name.clone(),
                category: reading.category.map(Into::into),
                retryable: reading.retryable,
                retry_after_ms: delay,
                code: reading.report.code,
            });
        };
        let contradiction = |fact: String| ReadError::Contradiction {
            contract: self.name.clone(),
            code: row.id.clone(),
            fact,
        };
        let derived = [
            ("the category", &reading.category, row.category.as_str()),
            ("the alert level", &reading.alert, row.alert_of(reading.report.origin)),
            ("the title", &reading.title, row.message.as_str()),
            ("the action", &reading.action, row.action.as_str()),
            ("the type", &reading.problem_type, row.problem_type.as_deref().unwrap_or_default()),
        ];
        for (what, claimed, fact) in derived {
            if let Some(claimed) = claimed.as_deref().filter(|claimed| *claimed != fact) {
                return Err(contradiction(format!("{what} {claimed:?}")));
            }
        }
        let class = self.claimed_class(&row.retry, &reading).map_err(&contradiction)?;
        let mut report = reading.report;
        report.retry_after_ms = delay;
        if delay.is_some() && !class.takes_delay() {
            return Err(contradiction("a delay".to_owned()));
        }
        if report.data.is_some() && !row.keeps_data {
            return Err(contradiction("data".to_owned()));
        }
        if report.timestamp.as_deref().is_some_and(|t| !is_timestamp(t)) {
            return Err(contradiction("a timestamp in another format".to_owned()));
        }
        if report.cause.as_ref().is_some_and(|c| !c.is_string() && !c.is_object()) {
            return Err(contradiction("a cause that is neither a string nor an object".to_owned()));
        }
        report.retry = Some(class);
        if let Some(status) = report.status.filter(|s| !row.status.contains(s)) {
            return Err(contradiction(format!("the status {status}")));
        }
        report.status = report.status.filter(|s| *s != row.default_status());
        Ok(report)
    }

    /// The class that the envelope speaks of, among those that the row lists.
    fn claimed_class(
        &self,
        listed: &[RetryClass],
        reading: &Reading<'_>,
    ) -> Result<RetryClass, String> {
        if let Some(kind) = reading.retry_kind.as_deref() {
            let class = self.retry.class(kind).filter(|class| listed.contains(class));
            return class.ok_or_else(|| format!("the retry kind {kind:?}"));
        }
        let delayed = reading.after_s.is_some() || reading.report.retry_after_ms.is_some();
        let agrees =
            |class: &&RetryClass| reading.retryable.is_none_or(|r| r == class.is_retryable());
        let mut agreeing = listed.iter().filter(agrees);
        let Some(first) = agreeing.clone().next() else {
            return Err(format!("retryable {}", reading.retryable.unwrap_or_default()));
        };
        // A delay implies the class that has one.
        let takes = agreeing.find(|class| delayed && class.takes_delay());
        Ok(*takes.unwrap_or(first))
    }

    /// Wraps a success, for contracts that do (T1). `None` leaves the success alone.
    #[must_use]
    pub fn success(&self, profile: Profile, data: &RawValue, meta: &Meta) -> Option<Vec<u8>> {
        let template = &self.success.as_ref()?[profile.0];
        let mut out = Vec::with_capacity(data.get().len() + 128);
        template.write(&Success { data, meta }, &mut out);
        Some(out)
    }
}

/// How an envelope is put into a `CallToolResult`.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResultOptions {
    /// The tool declares an `outputSchema`: no `structuredContent` then, since clients check it. The
    /// envelope is in [`ENVELOPE_META`] instead.
    pub has_output_schema: bool,
    /// The modern era has `resultType`.
    pub modern: bool,
}

/// An envelope, ready to be put into a result, which also has it as a string.
#[derive(Clone, Debug)]
pub struct Envelope(Both);

impl Envelope {
    /// The envelope's bytes.
    #[must_use]
    pub fn json(&self) -> &[u8] {
        &self.0.json
    }
}

impl Fault {
    /// The whole MCP result: the envelope as text and as structured content, `isError` true, so
    /// that a plain client sees the failure too (T7, W8).
    #[must_use]
    pub fn call_tool_result(&self, profile: Profile, options: ResultOptions) -> Vec<u8> {
        let envelope = self.envelope_twice(Surface::Mcp, profile);
        let mut out = Vec::new();
        self.write_result(&envelope, options, &mut out);
        out
    }

    /// The same for an envelope of this fault that was rendered before.
    #[must_use]
    pub fn result_around(&self, envelope: &[u8], options: ResultOptions) -> Vec<u8> {
        let mut out = Vec::with_capacity(envelope.len() * 2 + 512);
        self.put_result(envelope, options, &mut out, |out| match str::from_utf8(envelope) {
            Ok(text) => quote(text, out),
            Err(_) => quote(&String::from_utf8_lossy(envelope), out),
        });
        out
    }

    /// The envelope's bytes, and how they stand in a text.
    #[must_use]
    pub fn envelope_twice(&self, surface: Surface, profile: Profile) -> Envelope {
        let room = || Vec::with_capacity(512);
        Envelope(self.written(surface, profile, Both { json: room(), text: room() }))
    }

    /// Appends the whole MCP result to `out`, around the MCP envelope of this fault.
    pub fn write_result(&self, envelope: &Envelope, options: ResultOptions, out: &mut Vec<u8>) {
        let Envelope(Both { json, text }) = envelope;
        out.reserve(json.len() + text.len() + 512);
        self.put_result(json, options, out, |out| {
            out.push(b'"');
            out.extend_from_slice(text);
            out.push(b'"');
        });
    }

    fn put_result(
        &self,
        json: &[u8],
        options: ResultOptions,
        out: &mut Vec<u8>,
        put_text: impl FnOnce(&mut Vec<u8>),
    ) {
        let contract = self.contract();
        out.extend_from_slice(b"{");
        if options.modern {
            out.extend_from_slice(br#""resultType":"complete","#);
        }
        out.extend_from_slice(br#""content":[{"type":"text","text":"#);
        put_text(out);
        out.push(b'}');
        for block in self.blocks() {
            out.push(b',');
            out.extend_from_slice(block.as_bytes());
        }
        out.push(b']');
        // Structured content must be an object; an envelope may be a list.
        if !options.has_output_schema && json.first() == Some(&b'{') {
            out.extend_from_slice(br#","structuredContent":"#);
            out.extend_from_slice(json);
        }
        out.extend_from_slice(br#","isError":true,"_meta":{"#);
        quote(CONTRACT_META, out);
        out.push(b':');
        for (before, word) in
            [(r#"{"name":"#, &contract.name), (r#","version":"#, &contract.version)]
        {
            out.extend_from_slice(before.as_bytes());
            quote(word, out);
        }
        out.push(b'}');
        let mut member = |key, put: &dyn Fn(&mut Vec<u8>)| {
            out.push(b',');
            quote(key, out);
            out.push(b':');
            put(out);
        };
        if let Some(failure) = self.tool_failure() {
            member(TOOL_FAILURE_META, &|out| failure.write(out));
        }
        if options.has_output_schema {
            member(ENVELOPE_META, &|out| out.extend_from_slice(json));
        }
        out.extend_from_slice(b"}}");
    }
}

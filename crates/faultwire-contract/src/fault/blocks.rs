//! What a failing tool gave beside its text: pictures, resources, links. They follow the envelope
//! in the content of the result (U4).

use serde_json::{Value, json};

use super::Fault;
use crate::bound;
use crate::redact::Caller;

/// So many blocks follow the envelope.
const MOST: usize = 16;
/// All of them together have at most this many bytes; a screenshot has some hundred thousand.
const BYTES: usize = 1024 * 1024;
/// Levels of a block.
const DEPTH: usize = 8;
/// Media of which the bytes are no text, and so have nothing that rules could redact.
const OPAQUE: [&str; 4] = ["image/", "audio/", "video/", "application/pdf"];
/// Pictures that are text.
const TEXT: &str = "+xml";

impl Fault {
    /// The same with the content blocks that stood beside the failure's text. A contract whose
    /// messages are always its own takes none.
    ///
    /// ```
    /// use faultwire_contract::{Caller, Fault, Profile, Report, ResultOptions, Stamp, builtin};
    /// use serde_json::json;
    ///
    /// let contract = builtin("standard").unwrap();
    /// let fault = Fault::new(&contract, Report::new("not_found"), &Stamp::default())?;
    /// let picture = json!({ "type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png" });
    /// let fault = fault.with_blocks(vec![picture], &Caller::default());
    /// let result = fault.call_tool_result(Profile::default(), ResultOptions::default());
    /// let result: serde_json::Value = serde_json::from_slice(&result)?;
    /// assert_eq!(result["content"][1]["data"], "iVBORw0KGgo=");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_blocks(mut self, blocks: Vec<Value>, caller: &Caller<'_>) -> Self {
        if self.contract.text.canonical {
            return self;
        }
        let more = blocks.len().saturating_sub(MOST);
        let mut left = BYTES;
        for block in blocks.into_iter().take(MOST) {
            let whole = block.to_string().len();
            let kind = kind(&block);
            let safe = self.safe_block(block, caller).map(|block| block.to_string());
            let fits = safe.filter(|text| text.len() <= left);
            let text = fits.unwrap_or_else(|| omitted(&format!("{kind} of {whole} bytes")));
            left = left.saturating_sub(text.len());
            self.blocks.push(text);
        }
        if more > 0 {
            self.blocks.push(omitted(&format!("{more} more content blocks")));
        }
        self
    }

    /// A block without what the client must not see; none if that cannot be told, or if clients
    /// would refuse the whole result for it.
    fn safe_block(&self, mut block: Value, caller: &Caller<'_>) -> Option<Value> {
        let bytes = take_bytes(&mut block)?;
        let resource = block.get_mut("resource").map_or(Some(None), take_bytes)?;
        let limit = self.contract.text.message_bytes * 2;
        let shallow = bound::json_unredacted(block, DEPTH, limit * 4);
        let mut safe = bound::json(self.contract.redact_json_for(shallow, caller), DEPTH, limit);
        for (place, bytes) in [("", bytes), ("/resource", resource)] {
            let Some((name, bytes)) = bytes else { continue };
            safe.pointer_mut(place)?.as_object_mut()?.insert(name.to_owned(), bytes);
        }
        is_of_protocol(&safe).then_some(safe)
    }
}

/// Whether a block has what the protocol asks of its type. Clients refuse a result with one that has
/// not, and with it the envelope; so they do with a type that they do not know.
fn is_of_protocol(block: &Value) -> bool {
    let has = |place: &str| block.pointer(place).is_some_and(Value::is_string);
    let is_object = |name: &str| block.get(name).is_none_or(Value::is_object);
    if !is_object("annotations") || !is_object("_meta") {
        return false;
    }
    match block.get("type").and_then(Value::as_str) {
        Some("image" | "audio") => has("/data") && has("/mimeType"),
        Some("resource") => {
            has("/resource/uri") && (has("/resource/text") || has("/resource/blob"))
        }
        Some("resource_link") => has("/uri") && has("/name"),
        _ => false,
    }
}

/// The member that a block or a resource has in base64, taken out: bytes of which it is known that
/// they are no text. None if they may be text, with whatever stands in it.
#[expect(clippy::option_option, reason = "no bytes are fine, and unfit ones are not")]
fn take_bytes(holder: &mut Value) -> Option<Option<(&'static str, Value)>> {
    let Some(holder) = holder.as_object_mut() else { return Some(None) };
    let names = ["data", "blob"].into_iter();
    let mut found = names.filter_map(|name| Some((name, holder.shift_remove(name)?)));
    let (first, second) = (found.next(), found.next());
    let Some((name, bytes)) = first else { return Some(None) };
    let media = holder.get("mimeType").and_then(Value::as_str).unwrap_or_default();
    let is_opaque = OPAQUE.iter().any(|kind| media.starts_with(kind)) && !media.contains(TEXT);
    let fits = second.is_none() && is_opaque && bytes.as_str().is_some_and(is_base64);
    fits.then_some(Some((name, bytes)))
}

/// Whether clients can decode it.
fn is_base64(text: &str) -> bool {
    let bare = text.trim_end_matches('=');
    let padding = text.len() - bare.len();
    let is_whole = if padding > 0 { text.len().is_multiple_of(4) } else { bare.len() % 4 != 1 };
    padding <= 2
        && is_whole
        && bare.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/'))
}

/// What to call a block that is left out.
fn kind(block: &Value) -> &'static str {
    match block.get("type").and_then(Value::as_str) {
        Some("image") => "an image",
        Some("audio") => "a sound",
        Some("resource") => "a resource",
        Some("resource_link") => "a link",
        _ => "a content block",
    }
}

fn omitted(what: &str) -> String {
    json!({ "type": "text", "text": format!("… {what} omitted …") }).to_string()
}

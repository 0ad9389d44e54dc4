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

    /// A block without what the client must not see; none if that cannot be told.
    fn safe_block(&self, mut block: Value, caller: &Caller<'_>) -> Option<Value> {
        block.get("type")?.as_str()?;
        let bytes = take_bytes(&mut block);
        let resource = block.get_mut("resource").map(take_bytes);
        let limit = self.contract.text.message_bytes * 2;
        let shallow = bound::json_unredacted(block, DEPTH, limit * 4);
        let mut safe = bound::json(self.contract.redact_json_for(shallow, caller), DEPTH, limit);
        for (place, bytes) in [("", Some(bytes)), ("/resource", resource)] {
            match bytes {
                None | Some(Bytes::None) => {}
                Some(Bytes::Text) => return None,
                Some(Bytes::Opaque(name, bytes)) => {
                    safe.pointer_mut(place)?.as_object_mut()?.insert(name.to_owned(), bytes);
                }
            }
        }
        Some(safe)
    }
}

/// What a block or a resource has in base64.
enum Bytes {
    None,
    /// No text, under this name.
    Opaque(&'static str, Value),
    /// It may be text, with whatever stands in it.
    Text,
}

fn take_bytes(holder: &mut Value) -> Bytes {
    let Some(holder) = holder.as_object_mut() else { return Bytes::None };
    let Some((name, bytes)) =
        ["data", "blob"].into_iter().find_map(|name| Some((name, holder.shift_remove(name)?)))
    else {
        return Bytes::None;
    };
    let media = holder.get("mimeType").and_then(Value::as_str).unwrap_or_default();
    let is_opaque = OPAQUE.iter().any(|kind| media.starts_with(kind)) && !media.contains(TEXT);
    let is_base64 = bytes.as_str().is_some_and(|text| {
        text.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=-_".contains(&b))
    });
    if is_opaque && is_base64 { Bytes::Opaque(name, bytes) } else { Bytes::Text }
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

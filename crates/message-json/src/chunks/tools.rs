//! Chunks of tool calls: finds the call of each chunk and updates it.
//!
//! The rules are those of `processUIMessageStream` (`process-ui-message-stream.ts` of `vercel/ai`
//! 7): the id of a call names a part of the present step, and a later step may use it again.

use super::assembly::Assembly;
use super::call::{Call, Input, Streamed, Update};
use super::chunk::{Approved, Tool, ToolStep};
use super::chunk_error::ChunkError;
use super::slot::Slot;

/// A streamed input.
#[derive(Debug)]
pub(super) struct Partial {
    streamed: Streamed,
    encoding: Option<String>,
    name: String,
    is_dynamic: bool,
    title: Option<String>,
    metadata: Option<String>,
}

impl Assembly {
    pub(super) fn change_tool(
        &mut self,
        step: ToolStep,
        tool: &Tool<'_>,
    ) -> Result<(), ChunkError> {
        match step {
            ToolStep::InputStart => self.start_input(tool),
            ToolStep::InputDelta => self.stream_input(tool),
            ToolStep::Input => {
                let update = Update {
                    input: given(tool),
                    title: super::written::owned(tool.title),
                    ..Update::new("input-available", tool)
                };
                self.update_in_step(tool, tool.dynamic == Some(true), update)
            }
            ToolStep::InputError => {
                let update = Update {
                    input: given(tool),
                    error_text: Some(error_text(tool)?),
                    ..Update::new("output-error", tool)
                };
                let known = self.find_in_step(|call| call.id == tool.tool_call_id);
                let is_dynamic = match known.and_then(|index| self.call(index)) {
                    Some(call) => call.is_dynamic,
                    None => tool.dynamic == Some(true),
                };
                self.update_in_step(tool, is_dynamic, update)
            }
            ToolStep::Approval => {
                let id = tool.approval_id.as_deref();
                let id = id.ok_or(ChunkError::Field {
                    field: "approvalId",
                })?;
                let index = self.invocation(&tool.tool_call_id)?;
                self.change_call(index, |call, _| call.request_approval(id, tool));
                Ok(())
            }
            ToolStep::Denied => {
                let index = self.invocation(&tool.tool_call_id)?;
                self.change_call(index, |call, _| call.deny());
                Ok(())
            }
            ToolStep::Output => {
                let update = Update {
                    output: super::written::owned(tool.output.0),
                    preliminary: tool.preliminary,
                    ..Update::new("output-available", tool)
                };
                let index = self.invocation(&tool.tool_call_id)?;
                self.change_call(index, |call, streams| call.finish(streams, update));
                Ok(())
            }
            ToolStep::OutputError => {
                let update = Update {
                    error_text: Some(error_text(tool)?),
                    ..Update::new("output-error", tool)
                };
                let index = self.invocation(&tool.tool_call_id)?;
                self.change_call(index, |call, streams| call.finish(streams, update));
                Ok(())
            }
        }
    }

    pub(super) fn respond_to_approval(
        &mut self,
        response: &Approved<'_>,
    ) -> Result<(), ChunkError> {
        let id = &*response.approval_id;
        let index = self.find_from(0, |call| call.has_approval(id));
        let index = index.ok_or_else(|| ChunkError::NoApproval { id: id.to_owned() })?;
        self.change_call(index, |call, _| call.respond_to_approval(response));
        Ok(())
    }

    fn start_input(&mut self, tool: &Tool<'_>) -> Result<(), ChunkError> {
        let name = tool.tool_name.as_deref();
        let name = name.ok_or(ChunkError::Field { field: "toolName" })?;
        let encoding = tool.input_encoding.as_deref();
        if encoding.is_some_and(|it| !matches!(it, "json" | "text")) {
            let field = "inputEncoding";
            return Err(ChunkError::Field { field });
        }
        let partial = Partial {
            streamed: Streamed {
                stream: self.streams.len(),
                len: 0,
                is_text: encoding == Some("text"),
            },
            encoding: encoding.map(str::to_owned),
            name: name.to_owned(),
            is_dynamic: tool.dynamic == Some(true),
            title: super::written::owned(tool.title),
            metadata: super::written::owned(tool.tool_metadata),
        };
        let update = Update {
            encoding: partial.encoding.clone(),
            title: partial.title.clone(),
            ..Update::new("input-streaming", tool)
        };
        self.update_in_step(tool, partial.is_dynamic, update)?;
        self.streams.push(String::new());
        let id = tool.tool_call_id.clone().into_owned();
        self.inputs.insert(id, partial);
        Ok(())
    }

    fn stream_input(&mut self, tool: &Tool<'_>) -> Result<(), ChunkError> {
        let delta = tool.input_text_delta.and_then(json::string_body);
        let delta = delta.ok_or(ChunkError::Field {
            field: "inputTextDelta",
        })?;
        let id = &*tool.tool_call_id;
        let Some(partial) = self.inputs.get(id) else {
            return Err(ChunkError::NoInput { id: id.to_owned() });
        };
        let (is_dynamic, begun) = (partial.is_dynamic, partial.streamed.len);
        let known = self.find_in_step(|call| call.id == id && call.is_dynamic == is_dynamic);
        // In a step without this call yet, the part begins with the whole input.
        let size = delta.len() + known.map_or(begun, |_| 0);
        self.check_room(size)?;
        self.check_streamed(delta.len())?;
        let index = match known {
            Some(index) => index,
            None => self.add(Slot::Call(Box::new(Call::new(id, is_dynamic))))?,
        };
        let Some(partial) = self.inputs.get_mut(id) else {
            return Ok(());
        };
        self.streams[partial.streamed.stream].push_str(delta);
        self.streamed_size += delta.len();
        partial.streamed.len += delta.len();
        let update = Update {
            state: "input-streaming",
            input: Input::Streamed(partial.streamed),
            raw_input: Some(partial.streamed).filter(|_| known.is_some() || !is_dynamic),
            encoding: partial.encoding.clone(),
            title: partial.title.clone(),
            metadata: partial.metadata.clone(),
            ..Update::default()
        };
        let name = partial.name.clone();
        self.change_call(index, |call, _| call.update(Some(&name), update));
        Ok(())
    }

    /// Updates the call in the present step, or begins it.
    fn update_in_step(
        &mut self,
        tool: &Tool<'_>,
        is_dynamic: bool,
        update: Update,
    ) -> Result<(), ChunkError> {
        let id = &*tool.tool_call_id;
        let known = self.find_in_step(|call| call.id == id && call.is_dynamic == is_dynamic);
        let name = tool.tool_name.as_deref();
        let index = match known {
            Some(index) => index,
            None if name.is_none() => return Err(ChunkError::Field { field: "toolName" }),
            None => self.add(Slot::Call(Box::new(Call::new(id, is_dynamic))))?,
        };
        self.change_call(index, |call, _| call.update(name, update));
        Ok(())
    }

    /// Returns the call of a result: that of the present step, or else the newest of this id.
    fn invocation(&self, id: &str) -> Result<usize, ChunkError> {
        let is_newest = |slot: &Slot| matches!(slot, Slot::Call(call) if call.id == id);
        let found = self.find_in_step(|call| call.id == id);
        let found = found.or_else(|| self.slots.iter().rposition(is_newest));
        found.ok_or_else(|| ChunkError::NoCall { id: id.to_owned() })
    }

    fn find_in_step(&self, is_it: impl Fn(&Call) -> bool) -> Option<usize> {
        self.find_from(self.step_begin(), is_it)
    }

    fn find_from(&self, begin: usize, is_it: impl Fn(&Call) -> bool) -> Option<usize> {
        (begin..self.slots.len()).find(|index| self.call(*index).is_some_and(&is_it))
    }

    fn call(&self, index: usize) -> Option<&Call> {
        match self.slots.get(index) {
            Some(Slot::Call(call)) => Some(call),
            _ => None,
        }
    }
}

/// Returns the input in a chunk.
fn given(tool: &Tool<'_>) -> Input {
    match tool.input.0 {
        Some(input) => Input::Value(input.get().to_owned()),
        None => Input::Absent,
    }
}

fn error_text(tool: &Tool<'_>) -> Result<String, ChunkError> {
    let text = tool.error_text.filter(|it| json::string_body(it).is_some());
    let text = text.ok_or(ChunkError::Field { field: "errorText" })?;
    Ok(text.get().to_owned())
}

"""Adapters: stores of agent frameworks on Telpher, one module and one extra each.

| extra | module | implements |
|---|---|---|
| `telpher[a2a]` | `telpher.ext.a2a` | `VersionedTaskStore` and `TaskEventStream` of a2a-sdk |
| `telpher[claude-agent]` | `telpher.ext.claude_agent` | `SessionStore` of the Claude Agent SDK |
| `telpher[langgraph]` | `telpher.ext.langgraph` | `BaseCheckpointSaver` of LangGraph |
| `telpher[openai-agents]` | `telpher.ext.openai_agents` | `Session` of the OpenAI Agents SDK |
| `telpher[pydantic-ai]` | `telpher.ext.pydantic_ai` | `ConversationStore` of Pydantic AI |
| `telpher[google-adk]` | `telpher.ext.google_adk` | `BaseSessionService` of Google ADK |
| `telpher[litellm]` | `telpher.ext.litellm` | budgets and rates as a `CustomLogger` of LiteLLM |

`docs/python-adapters.md` has an example of each.
"""

// "MARK"
import { spawn } from "node:child_process"
import { homedir } from "node:os"
import { join, resolve } from "node:path"

const program = "PROGRAM"
const commands = "COMMANDS"
const data = process.env.XDG_DATA_HOME || join(homedir(), ".local", "share")
const database = resolve(data, "opencode", process.env.OPENCODE_DB || "opencode.db")

export const Annalist = async ({ client, directory }) => {
  const contexts = new Map()

  // Runs one of our hooks. What goes wrong costs its answer, never the session.
  const hook = (event, session_id) =>
    new Promise((resolve) => {
      let said = ""
      const child = spawn(program, ["hook", event], {
        cwd: directory,
        stdio: ["pipe", "pipe", "ignore"],
        timeout: 1000,
      })
      child.on("error", () => resolve({}))
      child.on("close", () => {
        try {
          resolve(JSON.parse(said))
        } catch {
          resolve({})
        }
      })
      child.stdin.on("error", () => {})
      child.stdout.on("data", (part) => (said += part))
      child.stdin.end(JSON.stringify({ session_id, cwd: directory, database }))
    })

  const start = async (session) => {
    const told = await hook("session-start", session)
    if (told.systemMessage) {
      const body = { message: told.systemMessage, variant: "warning" }
      client.tui.showToast({ body }).catch(() => {})
    }
    return told.hookSpecificOutput?.additionalContext
  }

  return {
    config: async (config) => {
      config.mcp = { annalist: { type: "local", command: [program, "mcp"] }, ...config.mcp }
      config.command = { ...commands, ...config.command }
    },
    // Each request has its own system prompt; the block stays the same during a session.
    "experimental.chat.system.transform": async ({ sessionID }, { system }) => {
      if (!sessionID) return
      if (!contexts.has(sessionID)) contexts.set(sessionID, start(sessionID))
      const context = await contexts.get(sessionID)
      if (context) system.push(context)
    },
    "experimental.session.compacting": async ({ sessionID }) => {
      await hook("pre-compact", sessionID)
    },
    event: async ({ event }) => {
      if (event.type === "session.idle") await hook("stop", event.properties.sessionID)
    },
    dispose: async () => {
      await Promise.all([...contexts.keys()].map((session) => hook("session-end", session)))
    },
  }
}

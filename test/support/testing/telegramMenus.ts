/** The menus of a bot of the Telegram double. */
import { Predicate } from "effect"
import { parseJson } from "#demo/dialects/looseJson.ts"
import { type ApiCall, type ApiReply, badRequest, type BotState, type JsonObject, succeed } from "./telegramMethods.ts"

const COMMANDS_MAX = 100

/** A name of the menu and what it says beside it, as the real one takes them. */
const isBotCommand = (one: unknown): boolean => {
  if (!Predicate.hasProperty(one, "command") || !Predicate.hasProperty(one, "description")) return false
  const { command, description } = one
  if (typeof command !== "string" || typeof description !== "string") return false
  return /^[a-z0-9_]{1,32}$/u.test(command) && description.length >= 3 && description.length <= 256
}

const setMyCommands = (bot: BotState, { parameters }: ApiCall): ApiReply => {
  const { commands } = parameters
  const valid = Array.isArray(commands) && commands.length <= COMMANDS_MAX && commands.every(isBotCommand)
  if (!valid) return badRequest("BOT_COMMAND_INVALID")
  const scope = scopeOf(parameters)
  if (scope === undefined) return badRequest("chat not found")
  bot.commands.set(scope, commands)
  return succeed(true)
}

/** The scope of a menu as a key; undefined for an unknown chat. */
const scopeOf = ({ scope }: JsonObject): string | undefined => {
  if (scope === undefined) return "default"
  const { chat_id, type } = (typeof scope === "string" ? parseJson(scope) : scope) as JsonObject
  if (type !== "chat") return String(type)
  return Number.isSafeInteger(Number(chat_id)) && Number(chat_id) !== 0 ? `chat ${Number(chat_id)}` : undefined
}

const getMyCommands = (bot: BotState, { parameters }: ApiCall): ApiReply => {
  const scope = scopeOf(parameters)
  return scope === undefined ? badRequest("chat not found") : succeed(bot.commands.get(scope) ?? [])
}

const deleteMyCommands = (bot: BotState, { parameters }: ApiCall): ApiReply => {
  bot.commands.delete(scopeOf(parameters) ?? "")
  return succeed(true)
}

/** The methods that keep menus. */
export const MENU_METHODS = { deleteMyCommands, getMyCommands, setMyCommands }

/** The parts of a configuration that has one bot beside the console. */

/** `dms` are those of the bot, without its name; the console has `me`. */
export const botConfig = (
  api_root: string,
  dms: Readonly<Record<string, { user_id: string; admin?: boolean; timezone?: string }>>
) => ({
  gateways: {
    bot: { type: "telegram", secret: "bot-token", api_root },
    terminal: { type: "console" }
  },
  dms: {
    ...Object.fromEntries(Object.entries(dms).map(([name, dm]) => [name, { gateway: "bot", ...dm }])),
    me: { gateway: "terminal", user_id: "local", admin: true }
  }
})

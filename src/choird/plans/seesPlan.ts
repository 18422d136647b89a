/** The reminders that a chat shows. Pure. */
import type { Config } from "#schema/Config.ts"
import type { ResourceName } from "#schema/Ids.ts"
import { dmsOfPerson, isGroup } from "#src/shared/config/people.ts"

/** Whether a chat shows the reminders of another one: a group its own alone, a person those of all their chats, and an admin all. */
export const seesPlan = (config: Config, chat: ResourceName, of: ResourceName): boolean => {
  if (isGroup(config, chat)) return of === chat
  const isAdmin = Object.hasOwn(config.dms, chat) && config.dms[chat]?.admin === true
  return isAdmin || dmsOfPerson(config, chat).includes(of)
}

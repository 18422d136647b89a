/** The people behind the DMs of an agent, from the configuration alone. Pure. */
import type { Config, Dm } from "#schema/Config.ts"
import type { ResourceName } from "#schema/Ids.ts"
import { traitsOf } from "./channelTraits.ts"

type Chats = Pick<Config, "dms" | "gateways">

const dmOf = ({ dms }: Chats, name: ResourceName): Dm | undefined => (Object.hasOwn(dms, name) ? dms[name] : undefined)

const isConsole = (config: Chats, { gateway }: Dm): boolean => traitsOf(config, gateway).is_local

/** Whether a chat id is that of a group, which Telegram numbers below 0. */
export const isGroupId = (user_id: string): boolean => user_id.startsWith("-")

/** Whether a DM is a group. */
export const isGroup = (config: Chats, name: ResourceName): boolean => {
  const dm = dmOf(config, name)
  return dm !== undefined && isGroupId(dm.user_id)
}

/** The time zone of the one at a DM, where config.json has one that is not the home's. */
export const zoneOf = (config: Chats, name: ResourceName | undefined): string | undefined =>
  name === undefined ? undefined : dmOf(config, name)?.timezone

/** The one who types at a console, with a shell on the host. */
const AT_CONSOLE = "console"

/** The people at some DMs, each with their DMs in order. At a console is the first admin with a phone, or else somebody of their own. A group is nobody. */
export const peopleOf = (
  config: Chats,
  names: ReadonlyArray<ResourceName>
): ReadonlyMap<string, ReadonlyArray<ResourceName>> => {
  const known = names.flatMap((name) => {
    const dm = dmOf(config, name)
    return dm === undefined || isGroupId(dm.user_id) ? [] : [{ name, dm }]
  })
  const admin = known.find(({ dm }) => dm.admin && !isConsole(config, dm))?.dm.user_id
  const people = Map.groupBy(known, ({ dm }) => (isConsole(config, dm) ? (admin ?? AT_CONSOLE) : dm.user_id))
  return new Map([...people].map(([person, places]) => [person, places.map(({ name }) => name)]))
}

/** The DMs of the person at one of them; a group's is its own alone. */
export const dmsOfPerson = (config: Chats, name: ResourceName): ReadonlyArray<ResourceName> => {
  const all = Object.keys(config.dms).map((dm) => dm as ResourceName)
  return [...peopleOf(config, all).values()].find((own) => own.includes(name)) ?? [name]
}

/** Whether an agent with these DMs talks with several people. */
export const hasSeveralPeople = (config: Chats, names: ReadonlyArray<ResourceName>): boolean =>
  peopleOf(config, names).size > 1

/** The name of the person at each DM, that of their first phone, where an agent talks with several people. A group names its writers itself. */
export const writersAt = (
  config: Chats,
  names: ReadonlyArray<ResourceName>
): ReadonlyMap<ResourceName, ResourceName> | undefined => {
  const people = [...peopleOf(config, names).values()]
  if (people.length < 2) return undefined
  const nameOf = (own: ReadonlyArray<ResourceName>) =>
    own.find((name) => {
      const dm = dmOf(config, name)
      return dm !== undefined && !isConsole(config, dm)
    }) ?? own[0]
  return new Map(people.flatMap((own) => own.map((dm) => [dm, nameOf(own) ?? dm] as const)))
}

/**
 * The DMs that may get what belongs to nobody's message, best first as they are bound. Groups only where there is nothing else; where several people
 * talk to the agent its admins; and a phone before a console, which may be closed for weeks.
 */
export const unaskedDms = (config: Chats, names: ReadonlyArray<ResourceName>): ReadonlyArray<ResourceName> => {
  const known = names.filter((name) => dmOf(config, name) !== undefined)
  const preferred = (all: ReadonlyArray<ResourceName>, wanted: (name: ResourceName, dm: Dm) => boolean) => {
    const some = all.filter((name) => {
      const dm = dmOf(config, name)
      return dm !== undefined && wanted(name, dm)
    })
    return some.length === 0 ? all : some
  }
  const people = preferred(known, (_, dm) => !isGroupId(dm.user_id))
  const admins = [...peopleOf(config, people).values()].filter((own) => own.some((name) => dmOf(config, name)?.admin))
  const trusted =
    peopleOf(config, people).size > 1 ? preferred(people, (name) => admins.some((own) => own.includes(name))) : people
  return preferred(trusted, (_, dm) => !isConsole(config, dm))
}

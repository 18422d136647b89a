/**
 * The pages of an agent as they were shown: to its model by the newest snapshot, and to the person who was asked about a call. An action is of the element
 * that was shown, or of none.
 */
import { Effect } from "effect"
import type { Page } from "playwright-core"
import type { CallId } from "#schema/Ids.ts"
import type { HostCall } from "#src/choird/hosttools/HostTool.ts"
import { BoundedMap } from "#src/shared/boundedMap.ts"
import { ActionFailed } from "./ActionFailed.ts"
import { isSameElement, type ShownElement, shownElement } from "./shownElement.ts"

/** Calls about which a person was asked and whose page is remembered; more of them do not wait at once. */
const HELD_MAX = 32

/** A page as a snapshot showed it. */
export interface Shown {
  readonly page: Page
  /** The host of its address, or those that wrote it. */
  readonly site: string
  readonly title: string
  readonly snapshot: string
  /** Whether only some levels of it were shown. */
  readonly is_part: boolean
}

/** The object of a call: an element of a page, both as they were shown. */
export interface Target extends Omit<Shown, "snapshot"> {
  readonly ref: string | undefined
  readonly element: ShownElement
}

const refuse = (problem: string) => new ActionFailed({ problem, is_unknown: false })

/** An element in words, of which the page wrote the name. */
const words = ({ name, role }: ShownElement) => `${role} ${JSON.stringify(name)}`

const NOT_DONE = "Nothing was done: take a snapshot, and look again"

export class ShownPages {
  #newest: Shown | undefined
  readonly #held = new BoundedMap<CallId, Target>(HELD_MAX)

  /** The newest snapshot; none where a page could not be shown. */
  showed(shown: Shown | undefined) {
    this.#newest = shown
  }

  /** The target of a call about which a person is asked; it stays the same, whatever is shown afterwards. */
  hold(call_id: CallId, ref: string | undefined): Effect.Effect<Target, ActionFailed> {
    return Effect.gen({ self: this }, function* () {
      const target = this.#held.get(call_id) ?? (yield* this.#newestTarget(ref))
      this.#held.set(call_id, target)
      return target
    })
  }

  /** The target of a call: what the person saw who was asked about it, else what the newest snapshot shows. */
  target(ref: string | undefined, call: HostCall | undefined): Effect.Effect<Target, ActionFailed> {
    if (call?.is_asked !== true) return this.#newestTarget(ref)
    const held = this.#held.get(call.call_id)
    return held === undefined
      ? Effect.fail(refuse(`the page that was shown to the person who approved this is gone. ${NOT_DONE}`))
      : Effect.succeed(held)
  }

  #newestTarget(ref: string | undefined): Effect.Effect<Target, ActionFailed> {
    if (this.#newest === undefined) return Effect.fail(refuse("no page was shown: open one first"))
    const { snapshot, ...shown } = this.#newest
    const element = shownElement(snapshot, ref)
    return element === undefined
      ? Effect.fail(refuse(`there is no element ${ref} in the newest snapshot: take another one`))
      : Effect.succeed({ ...shown, ref, element })
  }
}

/** The refusal of an action on what is not on its page any more. */
export const isGone = ({ element }: Target) =>
  refuse(`the page has changed: ${words(element)} is not there any more. ${NOT_DONE}`)

/** Fails where a page is not as it was shown: another one, at another site, or with something else instead of the element. */
export const stillAs = (target: Target, { page, site, snapshot }: Omit<Shown, "title" | "is_part">) => {
  const { element, is_part, ref } = target
  const found = shownElement(snapshot, ref)
  if (page !== target.page) return Effect.fail(refuse(`another tab is open than when this was shown. ${NOT_DONE}`))
  if (site !== target.site)
    return Effect.fail(refuse(`the page was at ${target.site} when it was shown, and is at ${site} now. ${NOT_DONE}`))
  if (found === undefined) return Effect.fail(isGone(target))
  return isSameElement(element, found, is_part)
    ? Effect.void
    : Effect.fail(refuse(`the page has changed: ${words(element)} is now ${words(found)}. ${NOT_DONE}`))
}

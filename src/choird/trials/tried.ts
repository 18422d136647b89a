/** A line of what choird tried. */
import type { Tried } from "#schema/SystemApi.ts"

export const tried = (name: string, status: Tried["status"], detail: string, fix?: string): Tried =>
  fix === undefined ? { name, status, detail } : { name, status, detail, fix }

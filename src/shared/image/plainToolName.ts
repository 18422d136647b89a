/** The name of a tool without case and separators: models and their servers write those otherwise, so that two tools must differ in more. */
export const plainToolName = (name: string): string => name.toLowerCase().replaceAll(/[\s._:/-]+/gu, "")

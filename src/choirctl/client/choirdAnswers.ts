/** Whether somebody accepts connections on choird's socket, found out without asking anything. */
import { socketAnswers } from "#src/shared/files/homeLocks.ts"
import { operatorSocket } from "#src/choirctl/terminal/root.ts"

export const choirdAnswers = (home: string) => socketAnswers(operatorSocket(home))

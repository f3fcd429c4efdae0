/** Undoes one thing that was started; named for the log. */
export type Undo = [what: string, undo: () => Promise<void>];

/** Undoes everything, last started first. A failure is reported and does not stop the rest. */
export async function undoAll(undo: Undo[], onFailure: (what: string, error: unknown) => void): Promise<void> {
  for (let next = undo.pop(); next; next = undo.pop()) {
    const [what, work] = next;
    await work().catch((error: unknown) => onFailure(what, error));
  }
}

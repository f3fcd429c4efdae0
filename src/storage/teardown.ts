/** What undoes one thing that was begun, with its name for the log. */
export type Undo = [what: string, undo: () => Promise<void>];

/** Undoes everything, last begun first. A failure is reported and does not keep the others from being undone. */
export async function unwind(undo: Undo[], onFailure: (what: string, error: unknown) => void): Promise<void> {
  for (let next = undo.pop(); next; next = undo.pop()) {
    const [what, work] = next;
    await work().catch((error: unknown) => onFailure(what, error));
  }
}

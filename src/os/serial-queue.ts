/** Runs work one after the other, in the order of the calls. A failure reaches its own caller, and does not stop later work. */
export class SerialQueue {
  #last: Promise<unknown> = Promise.resolve();

  run<T>(work: () => T | Promise<T>): Promise<T> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => undefined);
    return result;
  }

  /** Resolves when all work queued so far is done. */
  async idle(): Promise<void> {
    await this.#last;
  }
}

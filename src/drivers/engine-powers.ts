/** What an engine may be able to do beyond running; a part of `driver.ts`, which everybody else imports it from. */

/**
 * Images of a running engine, to look into; nothing in them is ever run. References are whole: `registry/name:tag`, and
 * `docker.io/name:tag` for the default registry. Every method throws `ERR_DRIVER_FAILED` when the engine fails and
 * `ERR_CANCELLED` when the signal aborts.
 */
export interface ImageStore {
  /** Whether the engine has it. */
  has(reference: string, signal: AbortSignal): Promise<boolean>;
  /**
   * Fetches it from its registry. Throws `ERR_NOT_FOUND` where the registry has no such image and `ERR_FORBIDDEN` where a rule
   * of the engine or of the registry keeps it from being fetched.
   */
  pull(reference: string, signal: AbortSignal): Promise<void>;
  /** Tags under which the engine has the image of that name, `registry/name`. */
  tags(name: string, signal: AbortSignal): Promise<string[]>;
  /** Tags that registries offer, where the engine's registries are a part of it, as in a simulation. */
  offeredTags?(name: string): Promise<string[]>;
  /**
   * Hands the opened image to `look` and closes it afterwards, whatever happens. Throws `ERR_NOT_FOUND` when the engine does not
   * have it.
   */
  open<T>(reference: string, signal: AbortSignal, look: (image: OpenImage) => Promise<T>): Promise<T>;
}

/** An image that is open for reading. */
export interface OpenImage {
  readonly labels: Readonly<Record<string, string>>;
  /**
   * A file or a directory with everything below it, as a tar archive whose names all begin with the same first part; undefined
   * when there is none. Links on the way to it are followed within the image, which is the root for them.
   */
  archive(path: string): Promise<AsyncIterable<Uint8Array> | undefined>;
}

/** A container that the engine is to keep running for the service. */
export interface Companion {
  /** Names it and tells it from others; letters, digits, `_` and `-`. */
  id: string;
  image: string;
}

/** Containers that accompany something of the service; they come back with the engine until they are removed. */
export interface CompanionContainers {
  /** Makes and starts it, anew where it was made from another image. The image must be there. */
  ensure(companion: Companion, signal: AbortSignal): Promise<void>;
  /** Those that there are. */
  list(signal: AbortSignal): Promise<Companion[]>;
  /** Stops and removes it; harmless where there is none. */
  remove(id: string, signal: AbortSignal): Promise<void>;
}

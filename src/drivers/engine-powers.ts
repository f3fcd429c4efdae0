/** Optional powers of an engine; re-exported by `driver.ts`, from which others import them. */

/**
 * Reads images of a running engine; never runs anything in them. References are fully qualified: `registry/name:tag`, and
 * `docker.io/name:tag` for
 * the default registry. Every method throws `ERR_DRIVER_FAILED` when the engine fails and `ERR_CANCELLED` when the signal aborts.
 */
export interface ImageStore {
  /** Whether the engine has the image. */
  has(reference: string, signal: AbortSignal): Promise<boolean>;
  /**
   * Pulls it. Throws `ERR_NOT_FOUND` when the registry has no such image and `ERR_FORBIDDEN` when a rule of the engine or the registry
   * denies it.
   */
  pull(reference: string, signal: AbortSignal): Promise<void>;
  /** Local tags of the image of that name, `registry/name`. */
  tags(name: string, signal: AbortSignal): Promise<string[]>;
  /** Tags in registries, where the engine includes its registries, as in a simulation. */
  offeredTags?(name: string): Promise<string[]>;
  /** Passes the opened image to `look` and closes it afterwards in any case. Throws `ERR_NOT_FOUND` when the engine does not have it. */
  open<T>(reference: string, signal: AbortSignal, look: (image: OpenImage) => Promise<T>): Promise<T>;
}

/** An image that is open for reading. */
export interface OpenImage {
  readonly labels: Readonly<Record<string, string>>;
  /**
   * A file or a directory tree as a tar archive whose names share their first part; undefined when there is none. Links are followed within
   * the image, which is their root.
   */
  archive(path: string): Promise<AsyncIterable<Uint8Array> | undefined>;
}

/** A container that the engine keeps running for the service. */
export interface Companion {
  /** Its identifier and name; letters, digits, `_` and `-`. */
  id: string;
  image: string;
}

/** Containers managed by the service; they restart with the engine until they are removed. */
export interface CompanionContainers {
  /** Creates and starts it, or recreates it from another image. The image must be present. */
  ensure(companion: Companion, signal: AbortSignal): Promise<void>;
  /** The existing ones. */
  list(signal: AbortSignal): Promise<Companion[]>;
  /** Stops and removes it. Idempotent. */
  remove(id: string, signal: AbortSignal): Promise<void>;
}

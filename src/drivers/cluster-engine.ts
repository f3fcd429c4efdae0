/** What a cluster needs from the engine that runs its pods. */
export interface ClusterEngine {
  /** The engine's socket in the machine. */
  readonly socket: string;
  /**
   * Loads images from an archive on this host to where pods find them. They stay when the cluster goes.
   * @throws RdError `ERR_DRIVER_FAILED`, `ERR_FORBIDDEN` for images outside the list of allowed images, `ERR_CANCELLED`.
   */
  loadImages(archive: string, signal: AbortSignal): Promise<void>;
  /**
   * Stops the containers of all pods; with `remove` they are deleted with their data.
   * @throws RdError `ERR_DRIVER_FAILED` when the engine does not respond, `ERR_CANCELLED`.
   */
  endPods(how: 'stop' | 'remove', signal: AbortSignal): Promise<void>;
}

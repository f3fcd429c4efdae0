/** What a cluster asks of the engine that runs its pods. */
export interface ClusterEngine {
  /** Where the engine answers in the machine. */
  readonly socket: string;
  /**
   * Makes images of an archive on this host known to the engine, where pods look for them. They stay when the cluster goes.
   * @throws RdError `ERR_DRIVER_FAILED`, `ERR_FORBIDDEN` for what a list of allowed images holds back, `ERR_CANCELLED`.
   */
  loadImages(archive: string, signal: AbortSignal): Promise<void>;
  /**
   * Ends the containers of all pods; with `remove` they go, with what was written in them.
   * @throws RdError `ERR_DRIVER_FAILED` when the engine does not answer, `ERR_CANCELLED`.
   */
  endPods(how: 'stop' | 'remove', signal: AbortSignal): Promise<void>;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Variables that would lead a client to another engine, or make it talk in another way. */
const LEADING_AWAY = ['DOCKER_CONTEXT', 'DOCKER_TLS', 'DOCKER_TLS_VERIFY', 'DOCKER_CERT_PATH', 'DOCKER_API_VERSION'];

/**
 * The environment of a user with the engine at hand. A namespace that was chosen stays chosen.
 * @param engine its name and the endpoint that the status names, such as `unix:///run/docker.sock`.
 */
export function engineEnvironment(
  engine: { name: 'moby' | 'containerd'; endpoint: string },
  env: Environment,
  directories: readonly string[] = [],
): Record<string, string | undefined> {
  const kept = Object.fromEntries(Object.entries(env).filter(([name]) => !LEADING_AWAY.includes(name)));
  const path = [...directories, ...(env.PATH ? [env.PATH] : [])].join(':');
  const common = { ...kept, ...(path === '' ? {} : { PATH: path }) };
  if (engine.name === 'moby') return { ...common, DOCKER_HOST: engine.endpoint };
  return {
    ...common,
    CONTAINERD_ADDRESS: engine.endpoint.replace(/^unix:\/\//, ''),
    CONTAINERD_NAMESPACE: env.CONTAINERD_NAMESPACE || 'default',
  };
}

/** Mostly faults from which `src/kube/` recovers. Fields never have credentials or objects. */
export interface KubeLog {
  debug(message: string, fields?: Readonly<Record<string, unknown>>): void;
  info(message: string, fields?: Readonly<Record<string, unknown>>): void;
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
  error(message: string, fields?: Readonly<Record<string, unknown>>): void;
}

const nothing = (): void => {};

export const silentLog: KubeLog = { debug: nothing, info: nothing, warn: nothing, error: nothing };

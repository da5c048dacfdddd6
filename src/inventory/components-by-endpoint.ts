import type { ComponentClient } from './ports/component-client.ts';

/** Calls each component the way it is registered: in this process or over HTTP. */
export const byEndpoint = (inProcess: ComponentClient, http: ComponentClient): ComponentClient => ({
  invoke: (registration, request, signal) =>
    (registration.endpoint.inProcess === undefined ? http : inProcess).invoke(registration, request, signal),
});

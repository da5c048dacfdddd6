import { createAuthority, issue } from '../../../sandbox/pki.ts';
import { HttpComponentClient } from '../../../src/inventory/http/http-component-client.ts';
import type { ReportSink } from '../../../src/inventory/ports.ts';
import type { Registration } from '../../../src/inventory/registration.ts';
import { tokenReviewAuthenticator } from '../../../src/inventory/sdk/callers.ts';
import { serveComponent } from '../../../src/inventory/sdk/component-server.ts';
import { httpTransports } from '../../../src/inventory/sdk/http-transports.ts';
import { inProcessClient } from '../../../src/inventory/sdk/in-process-client.ts';
import { systemClock } from '../../../src/kit/clock.ts';
import { staticCredentials } from '../../../src/kube/credentials.ts';
import { noLog } from '../../../src/observe/log.ts';
import { player } from './components/player.ts';
import { type ComponentSettings, type RunningComponent, startPython, startShell } from './components/processes.ts';
import type { Candidate } from './conformance.ts';
import { type ConformanceWorld, callers, component, reviewToken, serverAccount } from './conformance-world.ts';
import type { Address } from './plain-client.ts';
import { registrationOf } from './registrations.ts';

const clock = systemClock;

const settingsOf = ({ apiUrl, callbackUrl }: ConformanceWorld): ComponentSettings => ({
  component,
  apiUrl,
  callbackUrl,
  serverAccount,
  reviewToken,
});

/** Calls the component with the server's own client. */
function overHttp(address: Address, close: () => Promise<void>): Candidate {
  const client = new HttpComponentClient({
    tokens: { forCall: () => Promise.resolve(callers.server) },
    clock,
    allowLoopbackHttp: true,
  });
  const { url, ca } = address;
  const registration = registrationOf(component, { endpoint: { url }, caBundle: ca, timeoutMs: 30_000 });
  return {
    address,
    invoke: (request) => client.invoke(registration, request, new AbortController().signal),
    close: async () => {
      client.close();
      await close();
    },
  };
}

const running = ({ url, close }: RunningComponent): Candidate => overHttp({ url }, close);

export const pythonCandidate = async (world: ConformanceWorld): Promise<Candidate> =>
  running(await startPython(settingsOf(world)));

export const shellCandidate = async (world: ConformanceWorld): Promise<Candidate> =>
  running(await startShell(settingsOf(world)));

/** Uses a certificate that only the CA of its registration signed. */
export async function typescriptCandidate({ apiUrl, callbackUrl }: ConformanceWorld): Promise<Candidate> {
  const addresses = { apiUrl, apiCa: undefined, callbackUrl };
  const transports = httpTransports({ ...addresses, apiTls: {}, callbackCa: undefined }, clock);
  const credentials = staticCredentials({ server: apiUrl, token: reviewToken });
  const reviews = tokenReviewAuthenticator({ credentials, component, serverNamespace: 'drawbridge-system', clock });
  const authority = createAuthority('of the registration');
  const identity = issue(authority, { commonName: component, serves: ['127.0.0.1'] });
  const server = await serveComponent({
    component: player(component),
    callers: reviews,
    addresses,
    transports,
    tls: { cert: identity.certificate, key: identity.key },
    host: '127.0.0.1',
    port: 0,
    clock,
    log: noLog,
  });
  const close = async (): Promise<void> => {
    await server.close();
    await reviews.close();
    transports.close();
  };
  return overHttp({ url: `https://127.0.0.1:${server.port}`, ca: authority.certificate }, close);
}

export function inProcessCandidate(world: ConformanceWorld): Promise<Candidate> {
  const { apiUrl } = world;
  const transports = httpTransports({ apiUrl, apiTls: {}, callbackCa: undefined }, clock);
  const reports: Pick<ReportSink, 'report'> = {
    report: (_, credentialId, body) => {
      const { status, body: said } = world.report(tokenWith(credentialId), body);
      const code = { 403: 'ForeignCredential', 503: 'Unavailable' }[status];
      if (code === undefined) return Promise.resolve({ status: 200, extension: said as never });
      return Promise.resolve({ status, code, message: 'no' } as never);
    },
  };
  const tokenWith = (credentialId: string): string =>
    [...world.live].find((token) => `JTI=${jtiOf(token)}` === credentialId) ?? '';
  const components = new Map([[component, player(component)]]);
  const client = inProcessClient({ components, openEntry: transports.openEntry, reports, clock });
  const registration = { endpoint: { inProcess: component }, timeoutMs: 5_000 } as unknown as Registration;
  return Promise.resolve({
    invoke: (request) => client.invoke(registration, request, new AbortController().signal),
    close: () => Promise.resolve(transports.close()),
  });
}

const jtiOf = (token: string): unknown =>
  (JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as { jti?: unknown }).jti;

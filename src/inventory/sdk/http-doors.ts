import type { Lease } from '../../api/inventory/contract/report.ts';
import type { ReconcileRequest } from '../../api/inventory/contract/request.ts';
import type { Clock } from '../../kit/clock.ts';
import { own } from '../../kit/json-value.ts';
import { parseJson } from '../../kit/safe-json.ts';
import { TransportError } from '../../kube/errors.ts';
import type { ReportAnswer } from '../ports/report-sink.ts';
import type { Addresses } from './addresses.ts';
import { entryAccessor } from './entry-accessor.ts';
import { type JsonAnswer, jsonCaller } from './json-calls.ts';
import type { RunDoors } from './run.ts';

/** The way from a component of its own to the API server and to the callbacks. `callbackCa`: PEM; undefined: the public authorities. */
export interface HttpDoors extends RunDoors {
  close(): void;
}

export function httpDoors(addresses: Addresses & { readonly callbackCa: string | undefined }, clock: Clock): HttpDoors {
  const { apiUrl, apiCa, callbackCa } = addresses;
  const api = jsonCaller(apiCa === undefined ? {} : { ca: apiCa }, clock);
  const callbacks = jsonCaller(callbackCa === undefined ? {} : { ca: callbackCa }, clock);
  return {
    entry: (request, token, signal) => entryAccessor(api, apiUrl, request, token, signal),
    report: async (request: ReconcileRequest, token, body, signal) => {
      const headers = { authorization: `Bearer ${token}` };
      return readAnswer(await callbacks.call({ method: 'POST', url: request.callback, headers, body, signal }));
    },
    close: () => {
      api.close();
      callbacks.close();
    },
  };
}

function readAnswer({ status, text }: JsonAnswer): ReportAnswer {
  const body = parsed(text);
  if (status === 200) return { status, lease: leaseIn(body) };
  const message = own(body, 'message');
  const said = typeof message === 'string' ? message : `the callback answered ${status}`;
  switch (status) {
    case 400:
      return { status, code: 'InvalidReport', message: said };
    case 401:
    case 403:
      return { status: 403, code: 'ForeignCredential', message: said };
    case 409:
      return { status, code: 'RunOver', message: said };
    default:
      return { status: 503, code: 'Unavailable', message: said };
  }
}

function leaseIn(body: unknown): Lease | undefined {
  const [leaseSeconds, auth] = [own(body, 'leaseSeconds'), own(body, 'auth')];
  if (typeof leaseSeconds !== 'number') return undefined;
  const [token, expires] = [own(auth, 'token'), own(auth, 'expires')];
  if (typeof token !== 'string' || typeof expires !== 'string') return { leaseSeconds };
  return { leaseSeconds, auth: { token, expires } };
}

function parsed(text: string): unknown {
  try {
    return parseJson(Buffer.from(text, 'utf8'));
  } catch (cause) {
    if (text === '') return undefined;
    throw new TransportError('the callback did not answer with JSON', cause, false);
  }
}

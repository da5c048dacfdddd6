import { accountName, callAudience, mothershipAccount } from '../../api/inventory/names.ts';
import type { ObjectName } from '../../api/object.ts';
import { type Clock, parseTime } from '../../kit/clock.ts';
import type { Client } from '../../kube/client.ts';
import { isNotFound, TransportError } from '../../kube/errors.ts';
import type { Entry } from '../entry.ts';
import type { RunToken, TokenIssuer } from '../ports/token-issuer.ts';
import type { Registration } from '../registration.ts';
import { credentialIdOf } from './credential-id.ts';
import type { EntryAccounts, Grantee } from './entry-accounts.ts';

export interface RunTokensDeps {
  readonly client: Client;
  readonly accounts: Pick<EntryAccounts, 'ensure' | 'forget'>;
  /** Of the account that calls come from. */
  readonly homeNamespace: string;
  readonly clock: Clock;
}

/** The least that the API server gives. */
const lifetimeS = 600;
/** A token for calls is shared until so much of it is left. */
const callReserveMs = 180_000;

export class RunTokens implements TokenIssuer {
  readonly #deps: RunTokensDeps;
  /** By component: shared until near its end. */
  readonly #forCalls = new Map<string, RunToken>();
  readonly #underWay = new Map<string, Promise<RunToken>>();

  constructor(deps: RunTokensDeps) {
    this.#deps = deps;
  }

  forRun(entry: Entry, registration: Registration, signal: AbortSignal): Promise<RunToken> {
    return this.forAccount(entry, registration, signal);
  }

  /** For any account of the entry, runs or not. */
  async forAccount(entry: Entry, grantee: Grantee, signal: AbortSignal): Promise<RunToken> {
    const { accounts } = this.#deps;
    const { namespace, uid } = entry.ref;
    const account = { namespace, name: accountName(uid, grantee.name) };
    await accounts.ensure(entry, grantee, signal);
    try {
      return await this.#issue(account, undefined, signal);
    } catch (error) {
      if (!isNotFound(error) || !accounts.forget(uid)) throw error;
      await accounts.ensure(entry, grantee, signal);
      return this.#issue(account, undefined, signal);
    }
  }

  async forCall(component: string): Promise<string> {
    const known = this.#forCalls.get(component);
    if (known && known.expiresAtMs - this.#deps.clock.now() > callReserveMs) return known.token;
    return (await (this.#underWay.get(component) ?? this.#renew(component))).token;
  }

  /** By no caller's signal, because others wait for it as well. */
  #renew(component: string): Promise<RunToken> {
    const account = { namespace: this.#deps.homeNamespace, name: mothershipAccount };
    const issuing = this.#issue(account, [callAudience(component)])
      .then((token) => {
        this.#forCalls.set(component, token);
        return token;
      })
      .finally(() => this.#underWay.delete(component));
    this.#underWay.set(component, issuing);
    return issuing;
  }

  async #issue(account: ObjectName, audiences?: string[], signal?: AbortSignal): Promise<RunToken> {
    const request = { expirationSeconds: lifetimeS, ...(audiences ? { audiences } : {}) };
    const { token, expiresAt } = await this.#deps.client.createToken(account, request, signal ? { signal } : {});
    const expiresAtMs = parseTime(expiresAt);
    if (expiresAtMs === undefined) {
      throw new TransportError('TokenRequest: the answer does not say when the token ends', undefined, false);
    }
    return { token, expiresAtMs, id: credentialIdOf(token) };
  }
}

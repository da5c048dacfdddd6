import { clusterInventories } from '../../api/inventory/names.ts';
import { type Clock, sleep } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import type { Client } from '../../kube/client.ts';
import { isForbidden } from '../../kube/errors.ts';
import type { Log } from '../../observe/log.ts';
import type { Entry } from '../entry.ts';
import { fenceCode } from '../policy/violation.ts';
import type { FenceProof } from '../ports/entry-access.ts';
import type { EntryAccounts, Grantee } from './entry-accounts.ts';
import type { RunTokens } from './run-tokens.ts';

export interface DryRunProofDeps {
  readonly entries: () => Iterable<Entry>;
  readonly accounts: Pick<EntryAccounts, 'withdrawFrom'>;
  readonly tokens: Pick<RunTokens, 'forAccount'>;
  /** A client that calls with this token and nothing else. */
  readonly clientWith: (token: string) => { readonly client: Client; close(): Promise<void> };
  readonly clock: Clock;
  readonly log: Log;
}

/** No component can have this name, so that it never has a run. */
const nobody: Grantee = { name: '0-proof', kubeconfig: 'none' };
/** How often somebody looks for a first entry, and the longest pause after a trial that proved nothing. */
const lookMs = 100;
const longestPauseMs = 30_000;

/** Proves that writes of components are fenced, by one that has to be refused: a dry run, with a token that holds no run. */
export class DryRunProof implements FenceProof {
  readonly #deps: DryRunProofDeps;
  #proved = false;

  constructor(deps: DryRunProofDeps) {
    this.#deps = deps;
  }

  get proved(): boolean {
    return this.#proved;
  }

  async prove(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    let pauseMs = 500;
    while (!this.#proved && !signal.aborted) {
      try {
        // Without an entry there is nothing to write into, and nothing to dispatch.
        const entry = this.#anyEntry();
        if (!entry) {
          await sleep(clock, lookMs, signal);
          continue;
        }
        const problem = await this.#try(entry, signal);
        this.#proved = problem === undefined;
        if (this.#proved) log.info('writes of components are fenced');
        else log.error('writes of components are not fenced, so none is run', { problem });
      } catch (error) {
        if (signal.aborted) return;
        log.warn('not known yet whether writes of components are fenced, so none is run', { error: describe(error) });
      }
      if (this.#proved) return;
      await sleep(clock, pauseMs, signal).catch(() => undefined);
      pauseMs = Math.min(pauseMs * 2, longestPauseMs);
    }
  }

  /** One that stays, if there is one. */
  #anyEntry(): Entry | undefined {
    let any: Entry | undefined;
    for (const entry of this.#deps.entries()) {
      if (!entry.deleting) return entry;
      any ??= entry;
    }
    return any;
  }

  /** Resolves to what is wrong; rejects when nothing can be said. */
  async #try(entry: Entry, signal: AbortSignal): Promise<string | undefined> {
    const { accounts, tokens, clientWith } = this.#deps;
    const { token } = await tokens.forAccount(entry, nobody, signal);
    const { client, close } = clientWith(token);
    try {
      await client.mergePatch(
        clusterInventories,
        entry.ref,
        { status: {} },
        { dryRun: true, subresource: 'status', signal },
      );
      return 'a write by a token without a run was not refused: the webhook of clusterinventories/status is not registered';
    } catch (error) {
      if (isForbidden(error) && describe(error).includes(`${fenceCode}: `)) return undefined;
      throw error;
    } finally {
      await close();
      await accounts.withdrawFrom(entry.ref, nobody.name, signal);
    }
  }
}

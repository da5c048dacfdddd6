import type { Lease } from '../../api/inventory/contract/report.ts';
import type { ComponentKey } from '../key.ts';

/** What whoever reports is told; `status` is that of HTTP. */
export type ReportAnswer =
  /** Taken, or known already: the same outcome twice is taken once. */
  | { readonly status: 200; readonly lease: Lease | undefined }
  /** Not what the contract says. */
  | { readonly status: 400; readonly code: 'InvalidReport'; readonly message: string }
  /** Not by the credential of that run. */
  | { readonly status: 403; readonly code: 'ForeignCredential'; readonly message: string }
  /** The run is over, was replaced, or has ended otherwise. */
  | { readonly status: 409; readonly code: 'RunOver' | 'OutcomeDiffers'; readonly message: string }
  /** This replica does not lead, or cannot store it now: report again. */
  | { readonly status: 503; readonly code: 'NotLeading' | 'Unavailable'; readonly message: string };

/** Where reports of runs that go on arrive: from the callback listener, and from components in this process. */
export interface ReportSink {
  /** `body` is parsed and hostile; `credentialId` is that of the token that came with it, already proved. Never rejects. */
  report(run: ComponentKey & { readonly seq: number }, credentialId: string, body: unknown): Promise<ReportAnswer>;
}

import { inProcessCandidate, typescriptCandidate } from '../../../support/inventory/candidates.ts';
import { describeConformance } from '../../../support/inventory/conformance.ts';

describeConformance('a component in TypeScript', 'over HTTP', typescriptCandidate);
describeConformance('a component in this process', 'within the process', inProcessCandidate);

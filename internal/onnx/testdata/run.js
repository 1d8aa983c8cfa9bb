// Runs ONNX models in onnxruntime. Standard input is a JSON list of {model, type, rows, columns, x};
// x has the numbers of the rows, and null for NaN. Standard output gets, for each model, one JSON
// object: the dims and the data of each output, or the error.
const ort = require('onnxruntime-node');
const array = { float64: Float64Array, float32: Float32Array };

async function main() {
  for (const job of JSON.parse(require('fs').readFileSync(0, 'utf8'))) {
    let line = {};
    try {
      const session = await ort.InferenceSession.create(job.model, { intraOpNumThreads: 1, logSeverityLevel: 3 });
      const x = array[job.type].from(job.x, (v) => (v === null ? NaN : v));
      const outputs = await session.run({ x: new ort.Tensor(job.type, x, [job.rows, job.columns]) });
      for (const name of session.outputNames) {
        line[name] = { dims: outputs[name].dims, data: Array.from(outputs[name].data, (v) => (Number.isNaN(v) ? null : v)) };
      }
      await session.release();
    } catch (error) {
      line = { error: String(error) };
    }
    console.log(JSON.stringify(line));
  }
}
main();

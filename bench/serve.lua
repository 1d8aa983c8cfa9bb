-- The requests of bench/serve_wrk.py for wrk: one row as JSON. After a run it prints the counts.
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = '{"age":59,"sex":2,"bmi":32.1,"bp":101,"s1":157,"s2":93.2,"s3":38,"s4":4,"s5":4.86,"s6":87}'

function done(summary, latency)
	local e = summary.errors
	io.write(string.format('RESULT {"requests": %d, "seconds": %.6f, "p99_ms": %.3f, "errors": %d}\n',
		summary.requests, summary.duration / 1e6, latency:percentile(99) / 1e3, e.connect + e.read + e.write + e.status + e.timeout))
end

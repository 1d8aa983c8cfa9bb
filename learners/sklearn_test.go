package learners_test

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/learnertest"
	"github.com/mercer-go/mercer/learners/validate"
	"gonum.org/v1/gonum/mat"
)

// The expected values of this file were computed by scikit-learn 1.2.1 with numpy 1.24.2 from the
// bundled diabetes data, unchanged (raw) or after StandardScaler (std), and printed with repr:
//
//	weights   1.0 + numpy.arange(442) % 3, or none
//	ridge     Ridge(alpha=…, solver="svd"), LinearRegression() for alpha 0
//	kernels   KernelRidge(alpha=0.1, kernel=…): rbf with gamma 1/8, laplacian
//	          with gamma 1/4, polynomial with degree 2, gamma 1, coef0 1, linear;
//	          precomputed from gaussian_process.kernels.Matern(length_scale=3, nu)
//	scores    metrics.mean_squared_error and its root, mean_absolute_error,
//	          r2_score, unweighted, on the training data

// table returns the bundled diabetes data, standardized if standardize is true.
func table(t *testing.T, standardize bool) (x, y *mat.Dense) {
	t.Helper()
	data, err := dataset.ReadCSV(filepath.Join("..", "testdata", "diabetes.csv"), nil)
	if err != nil {
		t.Fatal(err)
	}
	x, y, _ = learnertest.Encode(t, data, dataset.Rules{Targets: []string{"target"}, Standardize: standardize})
	return x, y
}

// diabetes returns the standardized data and the weights 1, 2, 3, 1, … of the expected values.
func diabetes(t *testing.T) (x, y *mat.Dense, weights []float64) {
	t.Helper()
	x, y = table(t, true)
	n, _ := x.Dims()
	weights = make([]float64, n)
	for i := range weights {
		weights[i] = float64(1 + i%3)
	}
	return x, y, weights
}

// figures holds the expected scores of a model.
type figures struct {
	RMSE, MAE, R2 float64
	N             int
}

// nearScore compares scores of predictions whose errors are at most `value`.
func nearScore(t *testing.T, got validate.Score, want figures, value float64) {
	t.Helper()
	checkClose(t, "RMSE", *got.RMSE, want.RMSE, value+442*0x1p-52*want.RMSE)
	checkClose(t, "MAE", *got.MAE, want.MAE, value+442*0x1p-52*want.MAE)
	// A change of the predictions by value changes R² by at most 2√(1−R²)·value/77 for the standard deviation 77 of y.
	checkClose(t, "R2", *got.R2, want.R2, 2*3*value/77+442*0x1p-52*10)
	if got.N != want.N {
		t.Errorf("N is %d, want %d", got.N, want.N)
	}
}

func TestRidgeAgainstScikitLearn(t *testing.T) {
	tests := []struct {
		standardize bool
		lambda      float64
		weighted    bool
		noIntercept bool
		intercept   float64
		coef        []float64
		score       figures
	}{
		{false, 1.0, false, false, -316.07711860429015,
			[]float64{-0.032852396855427346, -22.607045432280028, 5.640405234365648, 1.118997570048508, -0.9146734842699011, 0.5849098252881815, 0.1778852383788263, 6.250441778661697, 63.179080873617984, 0.28776690289977386},
			figures{RMSE: 53.48337682770958, MAE: 43.29169564350627, R2: 0.5176176862412358, N: 442}},
		{false, 1.0, true, false, -330.46464041692144,
			[]float64{-0.07718022890342603, -19.423299240331758, 5.540625238559046, 1.0223807239259655, -1.1553558363894099, 0.8166195930203402, 0.46945472416580536, 7.521638651467428, 67.76247083050795, 0.3095096847768415},
			figures{RMSE: 53.53834635732607, MAE: 43.476563217703415, R2: 0.516625603952203, N: 442}},
		{false, 0.0, false, false, -334.5671385187875,
			[]float64{-0.03636122422362255, -22.859648090498364, 5.602962091923711, 1.116807993318186, -1.0899963340632204, 0.7464504555142105, 0.37200471508913646, 6.533831935990337, 68.48312496478826, 0.28011698932149776},
			figures{RMSE: 53.476128764026576, MAE: 43.27745202531506, R2: 0.5177484222203498, N: 442}},
		{false, 0.0, true, false, -340.0899559468223,
			[]float64{-0.07866670495436232, -19.527219293086368, 5.522752968753432, 1.0209880889624638, -1.2420550108641215, 0.8950695963069207, 0.5698509233554748, 7.720714363842243, 70.40490587818189, 0.30654168577136465},
			figures{RMSE: 53.53764226082652, MAE: 43.467721855157855, R2: 0.5166383178294675, N: 442}},
		{true, 1.0, false, false, 152.133484162896,
			[]float64{-0.4311726582249167, -11.333654931877625, 24.77124180947337, 15.373472852972014, -30.08840059259591, 16.65315230335451, 1.4621070111054681, 7.521110929123299, 32.84375085651593, 3.266384869371485},
			figures{RMSE: 53.48534606055325, MAE: 43.281634637826194, R2: 0.517582163406304, N: 442}},
		{true, 1.0, true, false, 152.66513250838113,
			[]float64{-1.0019929594911718, -9.708647622466495, 24.41429787631627, 14.083010034107893, -38.41968041908074, 23.681548096138332, 5.284398970548006, 9.26585103196884, 35.0302441879306, 3.520874852299556},
			figures{RMSE: 53.53422497742036, MAE: 43.46956050611852, R2: 0.5167000213737253, N: 442}},
		{true, 0.0, false, false, 152.13348416289597,
			[]float64{-0.4761207861791539, -11.40686692344099, 24.72654886040218, 15.429404131395604, -37.67995261101587, 22.676162766290137, 4.8061381368978635, 8.422039355820809, 35.73444577133109, 3.216673718190516},
			figures{RMSE: 53.476128764026576, MAE: 43.27745202531506, R2: 0.5177484222203498, N: 442}},
		{true, 0.0, true, false, 152.67523843653933,
			[]float64{-1.0300767977074696, -9.743999163034788, 24.37257630613871, 14.105591947939148, -42.93645078160367, 27.191012749842645, 7.362224574032131, 9.9519180879382, 36.737229681518485, 3.520117028741915},
			figures{RMSE: 53.537642260826516, MAE: 43.46772185515784, R2: 0.5166383178294676, N: 442}},
		{true, 1.0, false, true, 0.0,
			[]float64{-0.4311726582249772, -11.333654931877676, 24.77124180947207, 15.373472852971958, -30.088400592607428, 16.653152303364365, 1.4621070111096621, 7.521110929123377, 32.843750856521176, 3.266384869371616},
			figures{RMSE: 161.26152438433434, MAE: 152.14634031698847, R2: -3.3854610500633253, N: 442}},
	}
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		maxError := 0.0
		for _, test := range tests {
			x, y := table(t, test.standardize)
			var weights []float64
			// condition is the square of the condition number of the centered x; weights up to 3 can triple it.
			condition := 2.7e5
			if test.standardize {
				condition = 471
			}
			if test.weighted {
				_, _, weights = diabetes(t)
				condition *= 3
			}
			m, err := learners.Ridge{Lambda: test.lambda, NoIntercept: test.noIntercept}.Fit(t.Context(), dev, x, y, learners.Options{Weights: weights})
			if err != nil {
				t.Fatal(err)
			}
			size := 0.0
			for _, w := range test.coef {
				size = math.Hypot(size, w)
			}
			n, d := x.Dims()
			bound := float64(n+d) * 0x1p-52 * condition * size
			for p, w := range test.coef {
				maxError = max(maxError, checkClose(t, "coef", m.Coef().At(p, 0), w, bound)/size)
			}
			// b = ȳ − x̄ᵀw for ten features with means up to 190 and values up to 350.
			checkClose(t, "intercept", m.Intercept()[0], test.intercept, 10*190*bound+float64(n)*0x1p-52*350)
			f, err := m.Predict(t.Context(), dev, x)
			if err != nil {
				t.Fatal(err)
			}
			score, err := validate.ScoreRegression(y, f, nil)
			if err != nil {
				t.Fatal(err)
			}
			nearScore(t, score, test.score, 10*350*bound+float64(n)*0x1p-52*350)
		}
		t.Logf("weights differ by at most %.2g of their norm", maxError)
	})
}

func TestKernelRidgeAgainstScikitLearn(t *testing.T) {
	tests := []struct {
		kernel   string
		weighted bool
		alpha    []float64 // coefficients of the first samples
		values   []float64 // predictions for the first samples
		score    figures
	}{
		{"gaussian(sigma=2)", false,
			[]float64{-562.2051154123143, -92.64611097937176, -174.83113965226346, -204.65738066385342},
			[]float64{207.22051154123199, 84.2646110979366, 158.48311396522553, 226.4657380663855},
			figures{RMSE: 30.913357584695223, MAE: 22.745997733879808, R2: 0.8388441438960909, N: 442}},
		{"gaussian(sigma=2)", true,
			[]float64{-561.7985206852333, -212.45188412579398, -157.1661851391189, -310.8693170568952},
			[]float64{207.1798520685243, 85.62259420629023, 146.23887283797066, 237.08693170569143},
			figures{RMSE: 27.423826001214806, MAE: 19.32522163127281, R2: 0.8731735530082969, N: 442}},
		{"laplacian(sigma=4)", false,
			[]float64{-180.56844595642613, -3.4565318140340793, -47.28054091480722, -26.293637491206933},
			[]float64{169.0568445956421, 75.34565318140332, 145.7280540914803, 208.62936374912078},
			figures{RMSE: 9.291715273584224, MAE: 7.1915004290188795, R2: 0.9854405314392626, N: 442}},
		{"polynomial(degree=2,c=1)", false,
			[]float64{-634.9374027724077, 16.991470746698035, -498.25346349005054, 80.70901637814657},
			[]float64{214.49374027735848, 73.30085292521017, 190.8253463490273, 197.92909836219064},
			figures{RMSE: 49.245586431124245, MAE: 39.076511860453586, R2: 0.5910329078716384, N: 442}},
		{"linear()", false,
			[]float64{970.9206154707385, 1589.952179894591, 1163.2592723790501, 1913.219661173658},
			[]float64{53.90793845290864, -83.99521798933165, 24.67407276212907, 14.67803388264656},
			figures{RMSE: 161.25851378827605, MAE: 152.14973679038138, R2: -3.3852973069936834, N: 442}},
		{"exponential(sigma=3)", false,
			[]float64{-185.4380577439401, -7.169158460903287, -101.52479725431174, -5.6248173273942745},
			[]float64{169.5438057743941, 75.71691584609032, 151.152479725431, 206.56248173273943},
			figures{RMSE: 11.814859571816669, MAE: 8.962030763073427, R2: 0.9764597611710004, N: 442}},
		{"matern32(sigma=3)", false,
			[]float64{-409.0514478277591, -32.993366969216055, -202.83089612230518, -104.2283288504225},
			[]float64{191.90514478277717, 78.29933669692164, 161.28308961223146, 216.4228328850431},
			figures{RMSE: 24.30882742799288, MAE: 17.929665763027053, R2: 0.9003489778980663, N: 442}},
		{"matern52(sigma=3)", false,
			[]float64{-532.1640363959863, -49.89530472301157, -254.78370658469942, -128.94871058782346},
			[]float64{204.21640363959742, 79.98953047230106, 166.47837065846977, 218.89487105878223},
			figures{RMSE: 31.20899040183647, MAE: 23.097728660696628, R2: 0.8357470509403311, N: 442}},
	}
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		x, y, weights := diabetes(t)
		n, _ := x.Dims()
		maxError := 0.0
		for _, test := range tests {
			k, err := kernels.Parse(test.kernel)
			if err != nil {
				t.Fatal(err)
			}
			const lambda = 0.1
			options := learners.Options{}
			condition := 1.0 // a bound on the condition number of K + λW⁻¹: ‖K‖ is at most the trace of K, and the eigenvalues of the sum are at least λ/w
			for i := range n {
				condition += kernels.Diag(k, x.RawRowView(i)) / lambda
			}
			if test.weighted {
				options.Weights = weights
				condition *= 3
			}
			m, err := learners.KernelRidge{Kernel: k, Lambda: lambda, NoIntercept: true}.Fit(t.Context(), dev, x, y, options)
			if err != nil {
				t.Fatal(err)
			}
			f, err := m.Predict(t.Context(), dev, x)
			if err != nil {
				t.Fatal(err)
			}
			bound := float64(n) * 0x1p-52 * condition * mat.Norm(y, 2)
			for i := range test.values {
				maxError = max(maxError, checkClose(t, test.kernel, f.At(i, 0), test.values[i], bound)/test.values[i])
				checkClose(t, test.kernel+": alpha", m.Alpha().At(i, 0), test.alpha[i], 3*bound/lambda)
			}
			score, err := validate.ScoreRegression(y, f, nil)
			if err != nil {
				t.Fatal(err)
			}
			nearScore(t, score, test.score, bound)
		}
		t.Logf("values differ by at most %.2g of themselves", maxError)
	})
}

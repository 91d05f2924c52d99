quantd_core_test(
    calibrate calibrate_methods_test.cc calibrate_requests_test.cc calibrate_scale_test.cc
    calibrate_state_test.cc)
